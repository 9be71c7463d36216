-- Why the job lost time, and what would help
SELECT number, cause, lost_ns, wall_ns, meaning, rank, worker, place, evidence, action, gain_low_ns, gain_high_ns, avoid
FROM found ORDER BY number LIMIT 8
