-- The 400 longest checkpoints: when each rank saved, and how long this took
SELECT * FROM (
    SELECT r.rank, r.step, r.name, r.args->>'path' AS path, r.start_ns - c.start_ns AS at_ns, dur_ns
    FROM hr_regions_of(what := 'checkpoints') r JOIN chosen c USING (cluster, job, attempt)
    WHERE r.kind = 'checkpoint' AND r.count = 1
    ORDER BY dur_ns DESC, r.start_ns, r.rank LIMIT 400)
ORDER BY at_ns, rank, name
