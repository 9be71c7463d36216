-- The first screen of the page as HTML, which needs no JavaScript. A row of `pieces` is a text between two tags. The texts are escaped at the end
WITH trained AS (SELECT count(DISTINCT (node, proc)) AS processes FROM by_process),
gains AS (
    SELECT *, number = 1 AS first, coalesce(format('{} % of the time: {}', CASE WHEN gain_low_ns < 0.01 * wall_ns THEN format('up to {:.0f}', 100.0 * gain_high_ns / wall_ns)
               ELSE format('{:.0f} to {:.0f}', 100.0 * gain_low_ns / wall_ns, 100.0 * gain_high_ns / wall_ns) END, hr_gain(gain_low_ns, gain_high_ns, wall_ns, gain_note)), 'not predicted') AS gain
    FROM found WHERE number <= 5),
job AS (SELECT c.*, (SELECT count(DISTINCT (node, rank, worker)) FROM processes SEMI JOIN chosen USING (cluster, job, attempt) WHERE worker IS NOT NULL) AS workers FROM chosen c),
used AS (
    SELECT sum(dur_ns)::BIGINT AS ns, coalesce(sum(bytes) FILTER (class = 'read'), 0) AS bytes_read, coalesce(sum(bytes) FILTER (class = 'write'), 0) AS bytes_written,
           coalesce(sum(count) FILTER (class = 'open'), 0) AS opens
    FROM rollups SEMI JOIN chosen USING (cluster, job, attempt) WHERE scope = 'data'),
lost AS (
    SELECT reason, sum(count)::BIGINT AS count FROM losses SEMI JOIN chosen USING (cluster, job, attempt) GROUP BY reason HAVING hr_loss_unit(reason) <> 'nothing'),
pieces(place, before, text, after) AS (
    SELECT 1, '<p class="job">', concat_ws(' · ', hr_whose(job, attempt), state,
               hr_duration(end_ns - start_ns), CASE WHEN nodes > 1 THEN hr_number_of(nodes, 'node') END,
               CASE WHEN ranks_seen > 0 THEN hr_number_of(ranks_seen, 'rank') END,
               CASE WHEN workers > 0 THEN hr_number_of(workers, 'DataLoader worker') || CASE WHEN ranks_seen > 1 THEN ' in all' ELSE '' END END,
               strftime(make_timestamp_ns(start_ns), '%Y-%m-%d %H:%M:%S UTC')), '</p>' FROM job
    UNION ALL SELECT 2, '<h1>', upper(meaning[1]) || meaning[2:], '</h1>' FROM gains WHERE first
    UNION ALL SELECT 2, '<h1>', 'No training loop was recorded', '</h1>' FROM chosen WHERE NOT EXISTS (FROM found)
    UNION ALL SELECT 3, '<p class="lost">', format('{} of {} ({:.0f} %) lost{}', hr_duration(lost_ns), hr_duration(wall_ns), 100.0 * lost_ns / wall_ns,
               CASE WHEN processes > 1 THEN format(' in each of {:,} training processes on average: {} in all{}', processes, hr_duration(processes * lost_ns),
                    CASE WHEN processes * lost_ns >= 36e10 THEN format(', {:.1f} GPU-hours if each has a GPU', processes * lost_ns / 36e11) ELSE '' END)
                    ELSE ' by the training process' END), '</p>' FROM gains, trained WHERE first AND cause <> 'nothing'
    UNION ALL SELECT 2.5, '<p class="lost">', format('{} in operations on files, summed over threads: {} read, {} written, {}', hr_duration(ns),
               hr_size(bytes_read::BIGINT), hr_size(bytes_written::BIGINT), hr_number_of(opens, 'open')), '</p>' FROM used WHERE ns > 0 AND NOT EXISTS (FROM found)
    UNION ALL SELECT 3, '<p>', 'PyTorch reports its loops under headrace run; other programs can mark them with headrace.h. The pictures below show the files that the job used.', '</p>'
               FROM chosen WHERE NOT EXISTS (FROM found)
    UNION ALL SELECT 4, '<dl>', '', '' FROM gains WHERE first
    UNION ALL SELECT 5, '<dt>What to do</dt><dd>', action, '</dd>' FROM gains WHERE first AND action IS NOT NULL
    UNION ALL SELECT 6, '<dt>What it saves</dt><dd>', gain, '</dd>' FROM gains WHERE first AND action IS NOT NULL
    UNION ALL SELECT 7, '<dt>Where</dt><dd>', place, '</dd>' FROM gains WHERE first AND place IS NOT NULL
    UNION ALL SELECT 8, '<dt>What shows it</dt><dd>', evidence, '</dd>' FROM gains WHERE first AND evidence IS NOT NULL
    UNION ALL SELECT 9, '<dt>What does not help</dt><dd>', avoid, '</dd>' FROM gains WHERE first AND avoid IS NOT NULL
    UNION ALL SELECT 10, '</dl>', '', '' FROM gains WHERE first
    UNION ALL SELECT 11, '<h2>', 'Further losses', '</h2><ul>' FROM gains WHERE number = 2
    UNION ALL SELECT 11 + number / 100.0, '<li>', concat_ws('; ', format('{} ({:.0f} %): {}', hr_duration(lost_ns), 100.0 * lost_ns / wall_ns, meaning), place, 'do: ' || action,
               CASE WHEN gain_high_ns IS NOT NULL THEN 'saves ' || gain END), '</li>' FROM gains WHERE NOT first
    UNION ALL SELECT 12, '</ul>', '', '' FROM gains WHERE number = 2
    UNION ALL SELECT 13, '<p class="missing">', 'The recording is complete: no operation was lost.', '</p>' FROM chosen WHERE NOT EXISTS (FROM lost)
    UNION ALL SELECT 13, '<p class="missing">', 'Missing from the recording: ' || string_agg(format('{:,} {} ({})', count, coalesce(hr_loss_unit(reason), 'operations'), coalesce(hr_loss_meaning(reason), reason)), '; ' ORDER BY count DESC) || '. See "Losses" below.', '</p>'
               FROM lost HAVING count(*) > 0
    UNION ALL SELECT 14, '<p class="others">', format('The store has {:,} more jobs: headrace report STORE --job JOB shows another one.', count(*) - 1), '</p>' FROM jobs HAVING count(*) > 1)
SELECT string_agg(before || replace(replace(replace(text, '&', '&amp;'), '<', '&lt;'), '>', '&gt;') || after, '' ORDER BY place) AS html
FROM pieces
