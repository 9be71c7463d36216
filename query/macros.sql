-- Macros of the named queries; query.c creates hr_is_copy(op) from the table of operations

-- The kind of a row of hr_rollups(): read, write, copy or other. The two sides of a copy, a read and a write, have rows of their own
CREATE MACRO hr_what(op, class, side) AS
    CASE WHEN side IS NULL AND hr_is_copy(op) THEN 'copy' WHEN class IN ('read', 'write') THEN class ELSE 'other' END;

-- To join overlapping intervals by an equality, time is divided into pieces of 2^27 ns (134 ms), or of 2^37 ns (137 s) for longer
-- operations; the longest operations share one piece (0). An operation belongs to the piece in which it starts, and ends in this or the
-- next piece.
CREATE MACRO hr_piece(start_ns, dur_ns) AS
    CASE WHEN dur_ns >> 27 = 0 THEN start_ns >> 27 WHEN dur_ns >> 37 = 0 THEN -(start_ns >> 37) ELSE 0 END;
-- The pieces whose operations may overlap with an interval: those that it touches, and the one before
CREATE MACRO hr_pieces(start_ns, end_ns) AS
    list_concat(range((start_ns >> 27) - 1, ((end_ns - 1) >> 27) + 1),
                list_transform(range((start_ns >> 37) - 1, ((end_ns - 1) >> 37) + 1), lambda p: -p), [0]);

-- A duration for people, as hr_text_duration of common/text.h prints it
CREATE MACRO hr_three_digits(value, unit) AS
    CASE WHEN value >= 99.95 THEN format('{:.0f} {}', value, unit) WHEN value >= 9.995 THEN format('{:.1f} {}', value, unit)
         ELSE format('{:.2f} {}', value, unit) END;
CREATE MACRO hr_duration(ns) AS
    CASE WHEN ns < 999500 THEN hr_three_digits(ns / 1e3, 'us') WHEN ns < 999500000 THEN hr_three_digits(ns / 1e6, 'ms')
         WHEN ns < 995e8 THEN hr_three_digits(ns / 1e9, 's')
         WHEN round(ns / 1e9) < 3600 THEN format('{} min {:02d} s', round(ns / 1e9)::BIGINT // 60, round(ns / 1e9)::BIGINT % 60)
         ELSE format('{} h {:02d} min', round(ns / 1e9)::BIGINT // 3600, round(ns / 1e9)::BIGINT % 3600 // 60) END;

-- A range of durations
CREATE MACRO hr_durations(low_ns, high_ns) AS
    CASE WHEN hr_duration(low_ns) = hr_duration(high_ns) THEN hr_duration(low_ns) ELSE format('{} to {}', hr_duration(low_ns), hr_duration(high_ns)) END;

-- A predicted duration: with its limits, if it is known, else only these
CREATE MACRO hr_prediction(predicted_ns, low_ns, high_ns) AS
    CASE WHEN predicted_ns IS NULL OR hr_duration(low_ns) = hr_duration(high_ns) THEN hr_durations(low_ns, high_ns)
         ELSE format('{} ({})', hr_duration(predicted_ns), hr_durations(low_ns, high_ns)) END;

-- Time that a process saves if it continues while its checkpoints are written: `share` of the time that these take. The table
-- findings, too, uses shares from a half to one
CREATE MACRO hr_checkpoint_saving(checkpoint_ns, setting, share) AS CASE setting WHEN 'async' THEN share * checkpoint_ns ELSE 0 END;

-- Whether a part (table parts) is time of I/O that stops the training thread, of this scope: data, runtime or all
CREATE MACRO hr_is_io(part, scope) AS
    (scope <> 'runtime' AND part IN ('own_read', 'own_metadata', 'own_write', 'own_sync', 'wait_read', 'wait_metadata', 'wait_write'))
    OR (scope <> 'data' AND part IN ('import_io', 'wait_runtime'));
