-- Macros of the named queries. query/macros.c makes further ones, for example hr_is_copy(op).

-- The kind of a row of hr_rollups(): read, write, copy or other. A copy also has a row for its read, and a row for its write.
CREATE MACRO hr_what(op, class, side) AS
    CASE WHEN side IS NULL AND hr_is_copy(op) THEN 'copy' WHEN class IN ('read', 'write') THEN class ELSE 'other' END;

-- Divides time into pieces, so that a join by equal pieces finds overlapping intervals. A piece lasts 2^27 ns (134 ms), or 2^37 ns (137 s)
-- for longer operations. The longest operations share piece 0. An operation belongs to the piece in which it starts. It ends in this or in
-- the next piece.
CREATE MACRO hr_piece(start_ns, dur_ns) AS
    CASE WHEN dur_ns >> 27 = 0 THEN start_ns >> 27 WHEN dur_ns >> 37 = 0 THEN -(start_ns >> 37) ELSE 0 END;
-- The pieces of operations that may overlap with an interval: all pieces of the interval, and the piece before them.
CREATE MACRO hr_pieces(start_ns, end_ns) AS
    list_concat(range((start_ns >> 27) - 1, ((end_ns - 1) >> 27) + 1),
                list_transform(range((start_ns >> 37) - 1, ((end_ns - 1) >> 37) + 1), lambda p: -p), [0]);

-- A duration for people, as hr_text_duration of common/text.h prints it
CREATE MACRO hr_three_digits(value, unit) AS
    CASE WHEN value >= 99.95 THEN format('{:.0f} {}', value, unit) WHEN value >= 9.995 THEN format('{:.1f} {}', value, unit)
         ELSE format('{:.2f} {}', value, unit) END;
CREATE MACRO hr_duration(ns) AS
    CASE WHEN round(ns) = 0 THEN '0 s' WHEN round(ns) < 1000 THEN format('{} ns', round(ns)::BIGINT)
         WHEN ns < 999500 THEN hr_three_digits(ns / 1e3, 'us') WHEN ns < 999500000 THEN hr_three_digits(ns / 1e6, 'ms')
         WHEN ns < 995e8 THEN hr_three_digits(ns / 1e9, 's')
         WHEN round(ns / 1e9) < 3600 THEN format('{} min {:02d} s', round(ns / 1e9)::BIGINT // 60, round(ns / 1e9)::BIGINT % 60)
         ELSE format('{} h {:02d} min', round(ns / 1e9)::BIGINT // 3600, round(ns / 1e9)::BIGINT % 3600 // 60) END;

-- A range of durations
CREATE MACRO hr_durations(low_ns, high_ns) AS
    CASE WHEN hr_duration(low_ns) = hr_duration(high_ns) THEN hr_duration(low_ns) ELSE format('{} to {}', hr_duration(low_ns), hr_duration(high_ns)) END;

-- A size for people, as hr_text_size of common/text.h prints it
CREATE MACRO hr_size(bytes) AS
    CASE WHEN bytes < 1024 THEN format('{} B', bytes::BIGINT) WHEN bytes < 1023.5 * 1024 THEN hr_three_digits(bytes / 1024, 'KiB')
         WHEN bytes < 1023.5 * 1024 ** 2 THEN hr_three_digits(bytes / 1024 ** 2, 'MiB')
         WHEN bytes < 1023.5 * 1024 ** 3 THEN hr_three_digits(bytes / 1024 ** 3, 'GiB')
         WHEN bytes < 1023.5 * 1024 ** 4 THEN hr_three_digits(bytes / 1024 ** 4, 'TiB')
         WHEN bytes < 1023.5 * 1024 ** 5 THEN hr_three_digits(bytes / 1024 ** 5, 'PiB') ELSE hr_three_digits(bytes / 1024 ** 6, 'EiB') END;
CREATE MACRO hr_sizes(low, high) AS CASE WHEN hr_size(low) = hr_size(high) THEN hr_size(low) ELSE format('{} to {}', hr_size(low), hr_size(high)) END;

-- A share for people, as query/duckdb/cells.c prints it
CREATE MACRO hr_percent(percent) AS
    CASE WHEN percent > 0 AND percent < 0.05 THEN '<0.1 %' WHEN percent < 100 AND percent >= 99.95 THEN '>99.9 %' ELSE format('{:.1f} %', percent) END;

-- For example: 1 wait, 1,000 waits
CREATE MACRO hr_number_of(n, what) AS format('{:,} {}{}', n::BIGINT, what, CASE n WHEN 1 THEN '' ELSE 's' END);

-- A long name, shortened for a sentence
CREATE MACRO hr_short(name) AS CASE WHEN length(name) > 60 THEN format('{}...{}', left(name, 20), right(name, 37)) ELSE name END;

-- The name of a job, with which a sentence begins
CREATE MACRO hr_whose(job, attempt) AS format('job {}{}', job, CASE WHEN attempt > 0 THEN format(', attempt {}', attempt) ELSE '' END);

-- The time that an action saves, with the note of the finding
CREATE MACRO hr_gain(low_ns, high_ns, wall_ns, note) AS
    CASE WHEN high_ns IS NULL THEN NULL WHEN low_ns < 0.01 * wall_ns THEN format('up to {}', hr_duration(high_ns))
         ELSE hr_durations(low_ns, high_ns) END || coalesce(format(' ({})', note), '');

-- The largest cause of lost time, and what to do, for verdicts. Use it with queries that read `parts` or `waits`, because these need the same
-- diagnosis. about: 'waits' (only causes of waits for batches) or 'all'
CREATE MACRO hr_because(about) AS TABLE
    SELECT * FROM (
        SELECT cluster, job, attempt,
               unnest([format('because:  {} ({} of {}, {:.0f} %)', meaning, hr_duration(lost_ns), hr_duration(wall_ns), 100.0 * lost_ns / wall_ns),
                       format('do:       {}{}', action, coalesce(format(' (saves {})', hr_gain(gain_low_ns, gain_high_ns, wall_ns, NULL)), ''))]) AS line
        FROM (SELECT *, row_number() OVER (PARTITION BY cluster, job, attempt ORDER BY number) AS nth
              FROM hr_findings()
              WHERE lost_ns > 0 AND (about <> 'waits' OR (is_wait = 1 AND cause <> 'worker_start')))
        WHERE nth = 1)
    WHERE line IS NOT NULL; -- a finding may have no action

-- Whether a region has the number of a DataLoader in its args
CREATE MACRO hr_of_loader(args) AS
    CASE WHEN contains(args, '"loader"') THEN try_cast(json_extract(try_cast(args AS JSON), '$.loader') AS BIGINT) IS NOT NULL ELSE false END;

-- Why a job has no waits, steps or epochs: marks that could not be made, or none. how: what of headrace.h marks them
CREATE MACRO hr_unmarked(how) AS
    coalesce((SELECT 'marks are missing: ' || min(args->>'reason') FROM regions WHERE kind = 'mark' AND domain = 'headrace' AND name = 'marks'),
             format('PyTorch reports them under headrace run; other programs can mark them with {}', how));

-- A note with a hint about the jobs without regions of a kind. what: their plural; how: what of headrace.h marks them
CREATE MACRO hr_unrecorded(wanted, what, how) AS TABLE
    SELECT format(E'no {} were recorded of job {}\nhint: {}', what, names, hr_unmarked(how))
    FROM (SELECT string_agg(DISTINCT job, ', ' ORDER BY job) AS names FROM jobs
          ANTI JOIN (SELECT DISTINCT cluster, job, attempt FROM regions WHERE kind = wanted) USING (cluster, job, attempt))
    WHERE names IS NOT NULL;

-- A predicted duration with its limits, or only the limits if no single duration is predicted
CREATE MACRO hr_prediction(predicted_ns, low_ns, high_ns) AS
    CASE WHEN predicted_ns IS NULL OR hr_duration(low_ns) = hr_duration(high_ns) THEN hr_durations(low_ns, high_ns)
         ELSE format('{} ({})', hr_duration(predicted_ns), hr_durations(low_ns, high_ns)) END;

-- The time that a process saves if it continues while its checkpoints are written: `share` times their duration
CREATE MACRO hr_checkpoint_saving(checkpoint_ns, setting, share) AS CASE setting WHEN 'async' THEN share * checkpoint_ns ELSE 0 END;

-- Whether a part (table parts) is time in which I/O of this scope (data, runtime or all) stops the training thread
CREATE MACRO hr_is_io(part, scope) AS
    (scope <> 'runtime' AND part IN ('own_read', 'own_metadata', 'own_write', 'own_sync', 'wait_read', 'wait_metadata', 'wait_write'))
    OR (scope <> 'data' AND part IN ('import_io', 'wait_runtime'));
