-- Checkpoints, one row per save, rank and mount: which one, where, how long, how many files and bytes
-- arg name VARCHAR NULL: only regions of this name; NULL: outermost regions of kind checkpoint, and bursts of writes outside of them
-- arg gap SECONDS 1: writes within this time after a save may belong to the save; a pause of this length ends a burst of writes
-- arg least BIGINT 1048576: a burst of writes counts as a checkpoint if a rank writes at least this many bytes in it
-- known name: SELECT DISTINCT name FROM regions WHERE name IS NOT NULL ORDER BY name
-- shown: checkpoint rank step name path time_s dur_s bytes_written
-- column checkpoint: its number in the job, from 1; a save of several ranks has the same number in all of them
-- column rank: includes its workers; NULL: processes without a rank
-- column step: the last training step that began before it; NULL: no steps were recorded
-- column name: name of the region, for example torch.save or Trainer.save_checkpoint; NULL: a burst of writes
-- column path: the saved file, or the folder that contains all files; the final name if files were renamed
-- column time_s: begin, since the start of the job
-- column dur_s: duration, including writes and renames that followed; the query `steps` shows for how long the training loop stood still
-- column mount: mount to which it was written; one row per mount
-- column files: number of files written there
-- column bytes_written, writes: what the rank and its workers wrote there for this checkpoint; without events, there are no bytes.
-- If checkpoints overlap, a write belongs to the one that began last in its own process or, if this has none, in the rank
-- column write_s: sum of the durations of these writes
-- column source: regions: the application marked the checkpoint; writes: a burst of writes looks like a checkpoint
-- column job, attempt: job of the row
WITH named AS (
    SELECT *, end_ns > coalesce(max(end_ns) OVER (PARTITION BY cluster, job, attempt, who, lane ORDER BY start_ns, end_ns DESC
                                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), end_ns - 1) AS outermost
    FROM (SELECT cluster, job, attempt, node, proc, rank, coalesce(rank, -1) AS who, CASE WHEN rank IS NULL THEN format('{} {}', node, proc) END AS lane,
                 tid, name, regexp_replace(json_extract_string(try_cast(args AS JSON), '$.path'), '(^\./+)|(/+$)', '', 'g') AS saved_path,
                 start_ns, start_ns + dur_ns AS end_ns
          FROM regions WHERE CASE WHEN $name IS NULL THEN kind = 'checkpoint' ELSE name = $name END)),
-- Names `events` only once, because headrace cannot skip batches of events for a statement that names the table twice.
operations AS MATERIALIZED (
    SELECT cluster, job, attempt, node, proc, tid, rank, class, path, path2, mount, start_ns, end_ns, dur_ns, bytes
    FROM events
    WHERE class IN ('write', 'meta') AND (class = 'write' OR op IN ('rename', 'renameat', 'renameat2')) AND (class = 'write' OR errno IS NULL OR errno = 0)
          AND scope = 'data'),
writes AS (
    SELECT cluster, job, attempt, node, proc, tid, rank, coalesce(rank, -1) AS who, path, mount, start_ns, end_ns, dur_ns, bytes
    FROM operations WHERE class = 'write'),
-- A framework may begin a save in one thread and write the file in another. Both report a region: same path, different names.
rounds AS (
    SELECT *, count(*) FILTER (saved_path IS NULL OR name IS NOT DISTINCT FROM first_name) OVER (PARTITION BY cluster, job, attempt, who, lane, node, proc, saved_path ORDER BY start_ns
                                                                                           ROWS UNBOUNDED PRECEDING) AS round
    FROM (SELECT * EXCLUDE outermost, first_value(name) OVER (PARTITION BY cluster, job, attempt, who, lane, node, proc, saved_path ORDER BY start_ns) AS first_name
          FROM named WHERE outermost)),
pieces AS MATERIALIZED (
    SELECT *, lead(start_ns) OVER (PARTITION BY cluster, job, attempt, node, proc ORDER BY start_ns) AS further_ns
    FROM (SELECT cluster, job, attempt, node, proc, rank, who, lane, saved_path, round, arg_min(tid, (start_ns, tid)) AS tid, arg_min(name, (start_ns, tid)) AS name,
                 min(start_ns) AS start_ns, max(end_ns) AS end_ns
          FROM rounds GROUP BY cluster, job, attempt, node, proc, rank, who, lane, saved_path, round)),
-- `loop`: times at which the training loop runs again after a piece of a save: it waits for input, steps an optimizer or begins a step.
-- Times more than $gap seconds after a piece do not matter. Hash joins remove them, because the ASOF join below sorts what is left.
loop AS MATERIALIZED (
    SELECT cluster, job, attempt, node, proc, start_ns
    FROM (SELECT cluster, job, attempt, node, proc, start_ns, start_ns // (greatest($gap, 0.001) * 1e9)::BIGINT AS slot
          FROM regions WHERE kind IN ('step', 'input_wait', 'optimizer'))
         SEMI JOIN (SELECT cluster, job, attempt, node, proc, unnest([first_slot, first_slot + 1, first_slot + 2]) AS slot
                    FROM (SELECT *, end_ns // (greatest($gap, 0.001) * 1e9)::BIGINT AS first_slot FROM pieces))
         USING (cluster, job, attempt, node, proc, slot)),
resumed AS (
    SELECT p.*, l.start_ns AS loop_ns
    FROM pieces p ASOF LEFT JOIN loop l
      ON p.cluster = l.cluster AND p.job = l.job AND p.attempt = l.attempt AND p.node = l.node AND p.proc = l.proc AND p.end_ns <= l.start_ns),
-- A region without a path may save into memory. Then its thread writes the file after the region.
reaching AS (
    SELECT p.*, CASE WHEN p.saved_path IS NULL AND w.start_ns >= p.end_ns
                     THEN greatest(p.end_ns, least(p.end_ns + $gap * 1e9, p.further_ns, p.loop_ns))::BIGINT ELSE p.end_ns END AS until_ns
    FROM resumed p ASOF LEFT JOIN writes w
      ON p.cluster = w.cluster AND p.job = w.job AND p.attempt = w.attempt AND p.node = w.node AND p.proc = w.proc AND p.tid = w.tid AND p.start_ns <= w.start_ns),
-- Several files that are saved into one folder before the loop runs again are one checkpoint, unless two names differ only in a number.
following AS (
    SELECT *, coalesce(NOT (folder = lag(folder) OVER process AND start_ns <= lag(end_ns) OVER process + $gap * 1e9 AND start_ns <= coalesce(lag(loop_ns) OVER process, start_ns)
                            AND (nth = 1 OR nth = lag(nth) OVER process)), true) AS begins
    FROM (SELECT *, nullif(regexp_extract(saved_path, '^(.*/)[^/]+$', 1), '') AS folder,
                 row_number() OVER (PARTITION BY cluster, job, attempt, node, proc, regexp_replace(saved_path, '[0-9]+', '', 'g') ORDER BY start_ns) AS nth
          FROM reaching)
    WINDOW process AS (PARTITION BY cluster, job, attempt, node, proc ORDER BY start_ns)),
saves AS MATERIALIZED (
    SELECT cluster, job, attempt, node, proc, rank, who, lane, arg_min(name, start_ns) AS name, min(start_ns) AS start_ns, max(end_ns) AS end_ns,
           max(until_ns) AS until_ns, CASE WHEN count(*) = 1 THEN any_value(saved_path) ELSE rtrim(any_value(folder), '/') END AS saved_path, row_number() OVER () AS save
    FROM (SELECT *, count(*) FILTER (begins) OVER (PARTITION BY cluster, job, attempt, node, proc ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS nth_save FROM following)
    GROUP BY cluster, job, attempt, node, proc, rank, who, lane, nth_save),
placed AS MATERIALIZED (
    SELECT w.*, CASE WHEN w.start_ns < s.until_ns THEN s.save END AS save
    FROM (FROM writes SEMI JOIN saves USING (cluster, job, attempt, node, proc)) w ASOF LEFT JOIN saves s
      ON w.cluster = s.cluster AND w.job = s.job AND w.attempt = s.attempt AND w.node = s.node AND w.proc = s.proc AND w.start_ns >= s.start_ns
    UNION ALL
    SELECT w.*, CASE WHEN w.start_ns < s.until_ns THEN s.save END
    FROM (FROM writes ANTI JOIN saves USING (cluster, job, attempt, node, proc)) w ASOF LEFT JOIN saves s
      ON w.cluster = s.cluster AND w.job = s.job AND w.attempt = s.attempt AND w.who = s.who AND w.start_ns >= s.start_ns),
renames AS (
    SELECT cluster, job, attempt, node, path, path2, start_ns, end_ns FROM operations WHERE class = 'meta' AND path2 IS NOT NULL),
-- Writes after a save belong to this save if they go to its path, or to a file that is later renamed to its path.
targets AS (
    SELECT DISTINCT cluster, job, attempt, saved_path AS path, saved_path AS target FROM saves WHERE saved_path LIKE '/%'
    UNION
    SELECT r.cluster, r.job, r.attempt, r.path, saved_path FROM renames r JOIN saves s ON r.cluster = s.cluster AND r.job = s.job AND r.attempt = s.attempt AND r.path2 = s.saved_path),
late AS (
    SELECT w.* EXCLUDE save, target FROM (FROM placed WHERE save IS NULL) w JOIN targets USING (cluster, job, attempt, path)),
settled AS MATERIALIZED (
    SELECT * FROM placed WHERE save IS NOT NULL
    UNION ALL BY NAME
    SELECT w.* EXCLUDE target, s.save
    FROM late w ASOF LEFT JOIN saves s
      ON w.cluster = s.cluster AND w.job = s.job AND w.attempt = s.attempt AND w.who = s.who AND w.target = s.saved_path AND w.start_ns >= s.start_ns
    UNION ALL BY NAME
    FROM (FROM placed WHERE save IS NULL) ANTI JOIN targets USING (cluster, job, attempt, path)),
apart AS (
    SELECT *, coalesce(start_ns - max(end_ns) OVER (PARTITION BY cluster, job, attempt, who ORDER BY start_ns
                                                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
                       > $gap * 1e9, true) AS begins
    FROM settled WHERE save IS NULL AND $name IS NULL),
bursts AS (
    SELECT *, -count(*) FILTER (begins) OVER (PARTITION BY cluster, job, attempt, who ORDER BY start_ns
                                              ROWS UNBOUNDED PRECEDING) AS burst
    FROM apart),
spans AS MATERIALIZED (
    SELECT 'regions' AS source, cluster, job, attempt, rank, who, lane, save, name, saved_path, start_ns, end_ns FROM saves
    UNION ALL
    SELECT 'writes', cluster, job, attempt, rank, who, NULL, burst, NULL, NULL, min(start_ns), max(end_ns)
    FROM bursts GROUP BY cluster, job, attempt, rank, who, burst HAVING sum(bytes) >= $least),
files AS (
    SELECT w.cluster, w.job, w.attempt, w.node, w.who, w.save, w.mount, w.path, any_value(s.end_ns) AS end_ns, count(*) AS writes, sum(w.bytes) AS bytes,
           sum(w.dur_ns) AS dur_ns, min(w.start_ns) AS first_ns, max(w.end_ns) FILTER (w.start_ns >= s.end_ns) AS late_ns
    FROM (SELECT cluster, job, attempt, node, who, save, mount, path, start_ns, end_ns, dur_ns, bytes FROM settled WHERE save IS NOT NULL
          UNION ALL
          SELECT cluster, job, attempt, node, who, burst, mount, path, start_ns, end_ns, dur_ns, bytes FROM bursts) w
         JOIN spans s USING (cluster, job, attempt, who, save)
    GROUP BY w.cluster, w.job, w.attempt, w.node, w.who, w.save, w.mount, w.path),
-- `final`: the path of a file after a rename of the file or of one of its folders.
named_files AS (
    SELECT f.*, CASE WHEN r.start_ns <= greatest(f.end_ns, late_ns) + $gap * 1e9 THEN r.path2 || substr(f.path, length(r.path) + 1) ELSE f.path END AS final,
           CASE WHEN r.start_ns <= greatest(f.end_ns, late_ns) + $gap * 1e9 THEN r.end_ns END AS renamed_ns
    FROM (SELECT *, CASE WHEN path IN (SELECT path FROM renames) THEN path WHEN folder IN (SELECT path FROM renames) THEN folder
                         WHEN above IN (SELECT path FROM renames) THEN above END AS was
          FROM (SELECT *, regexp_extract(path, '^(.*)/[^/]*$', 1) AS folder, regexp_extract(path, '^(.*)/[^/]*/[^/]*$', 1) AS above FROM files)) f
         ASOF LEFT JOIN renames r
      ON f.cluster = r.cluster AND f.job = r.job AND f.attempt = r.attempt AND f.node = r.node AND f.was = r.path AND f.first_ns <= r.start_ns),
mounted AS (
    SELECT cluster, job, attempt, who, save, mount, count(DISTINCT final) AS files, sum(writes) AS writes, sum(bytes) AS bytes, sum(dur_ns) AS dur_ns,
           max(greatest(max(late_ns), max(renamed_ns))) OVER (PARTITION BY cluster, job, attempt, who, save) AS late_ns, min(final) AS low, max(final) AS high,
           list_max(list_filter(range(0, length(low) + 1), lambda i: low[1:i] = high[1:i])) AS common
    FROM named_files GROUP BY cluster, job, attempt, who, save, mount),
islands AS (
    SELECT *, count(*) FILTER (apart) OVER (PARTITION BY cluster, job, attempt ORDER BY start_ns ROWS UNBOUNDED PRECEDING) AS island
    FROM (SELECT *, coalesce(start_ns > max(end_ns) OVER (PARTITION BY cluster, job, attempt ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS apart
          FROM spans)),
every_step AS MATERIALIZED (
    SELECT cluster, job, attempt, coalesce(rank, -1) AS who, step, start_ns, start_ns // 1000000000 AS second
    FROM regions WHERE kind = 'step' AND step IS NOT NULL),
-- To find the last step before a save, only the steps of the save's second, and the last step of each earlier second are needed.
steps AS (
    FROM every_step SEMI JOIN (SELECT *, start_ns // 1000000000 AS second FROM spans) USING (cluster, job, attempt, who, second)
    UNION ALL
    SELECT cluster, job, attempt, who, arg_max(step, (start_ns, step)), max(start_ns), second FROM every_step GROUP BY cluster, job, attempt, who, second),
stepped AS (
    SELECT s.*, l.step
    FROM islands s ASOF LEFT JOIN steps l
      ON s.cluster = l.cluster AND s.job = l.job AND s.attempt = l.attempt AND s.who = l.who AND s.start_ns >= l.start_ns),
-- Saves of several ranks in the same step are one checkpoint. Without steps, the n-th saves of all ranks are one checkpoint if the
-- ranks saved equally often. Otherwise, saves that overlap in time are.
lanes AS (
    SELECT *, count(*) OVER (PARTITION BY cluster, job, attempt, who, lane, source) AS own_saves FROM stepped),
keyed AS (
    SELECT *, coalesce(step, -1) AS at_step,
           CASE WHEN step IS NULL AND min(own_saves) OVER job < max(own_saves) OVER job THEN island ELSE -1 END AS at_time
    FROM lanes WINDOW job AS (PARTITION BY cluster, job, attempt, source)),
together AS (
    SELECT *, min(start_ns) OVER (PARTITION BY cluster, job, attempt, source, at_step, at_time, nth) AS first_ns
    FROM (SELECT *, row_number() OVER (PARTITION BY cluster, job, attempt, who, lane, source, at_step, at_time ORDER BY start_ns) AS nth FROM keyed)),
numbered AS (
    SELECT *, dense_rank() OVER (PARTITION BY cluster, job, attempt ORDER BY first_ns, source, at_step, at_time, nth) AS checkpoint FROM together)
SELECT checkpoint, rank, step, n.name,
       CASE WHEN saved_path LIKE '/%' OR low IS NULL THEN saved_path WHEN low = high THEN low ELSE coalesce(nullif(regexp_replace(low[1:common], '/[^/]*$', ''), ''), '/') END AS path,
       ((n.start_ns - j.start_ns) / 1e9)::DECIMAL(19, 6) AS time_s, (greatest(end_ns, late_ns) - n.start_ns) / 1e9 AS dur_s,
       mount, coalesce(files, 0) AS files, coalesce(bytes, 0) AS bytes_written, coalesce(writes, 0) AS writes, coalesce(dur_ns, 0) / 1e9 AS write_s,
       source, job, attempt
FROM numbered n LEFT JOIN mounted USING (cluster, job, attempt, who, save)
     LEFT JOIN (SELECT cluster, job, attempt, start_ns FROM jobs) j USING (cluster, job, attempt)
ORDER BY job, attempt, cluster, checkpoint, rank NULLS LAST, n.start_ns, mount
