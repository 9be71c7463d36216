-- Where the time of each job was lost, and what to change: as text, for `headrace diagnose`
-- text: each row is a line
-- arg top COUNT 5: at most this many causes of each job
-- arg rank BIGINT[0,2147483647] NULL: only this rank
-- arg from DOUBLE NULL: only from this time on, in seconds since the start of the job; a negative number: before its end
-- arg to DOUBLE NULL: only until this time
-- known rank: SELECT DISTINCT rank FROM processes WHERE rank IS NOT NULL ORDER BY rank
-- column line: text
WITH found AS MATERIALIZED (
    SELECT *, format('{} ({:.0f} %)', hr_duration(lost_ns), 100.0 * lost_ns / wall_ns) AS lost,
           hr_whose(job, attempt) AS name
    FROM hr_findings(rank := $rank, from_s := $from, to_s := $to)
    WHERE number <= $top),
gains AS (
    SELECT *, hr_gain(gain_low_ns, gain_high_ns, wall_ns, gain_note) AS gain FROM found),
pages AS (
    SELECT cluster, job, attempt, number, list_concat(
        CASE WHEN number = 1 AND row_number() OVER (ORDER BY cluster, job, attempt, number) > 1 THEN [''] ELSE [] END,
        CASE WHEN number > 1 THEN []
             WHEN lost_ns = 0 THEN [format('{}, {}: {}', name, hr_duration(wall_ns), meaning)]
             ELSE [format('{}: largest loss {} of {} ({:.0f} %): {}', name, hr_duration(lost_ns), hr_duration(wall_ns), 100.0 * lost_ns / wall_ns, meaning)] END,
        CASE WHEN lost_ns = 0 THEN [] ELSE ['', format('{}. {}: {}', number, lost, meaning)] END,
        list_filter([
            format('   where:   {}', place),
            format('   shown:   {}', evidence),
            format('   do:      {}', action),
            format('   saves:   {}', gain),
            format('   no help: {}', avoid)], lambda line: line IS NOT NULL)) AS lines
    FROM gains
    UNION ALL
    SELECT cluster, job, attempt, 0, [format('job {}: no training loop {}', job, CASE WHEN $rank IS NULL AND $from IS NULL AND $to IS NULL
        THEN 'was recorded: PyTorch reports it under headrace run; other programs can mark it with headrace.h' ELSE 'of this rank or time was recorded' END)]
    FROM jobs ANTI JOIN found USING (cluster, job, attempt))
SELECT lines[i] AS line
FROM pages, LATERAL (SELECT unnest(range(1, len(lines) + 1)) AS i)
ORDER BY cluster, job, attempt, number, i
