-- Whether all that the kernel saw is recorded
SELECT CASE WHEN missing_count = 0 AND missing_bytes = 0
            THEN format('{}: complete: all {} that the kernel saw are recorded ({} by the shim, {} by probes)', whose, hr_size(kernel_bytes), hr_size(shim_bytes),
                        hr_size(bpf_bytes))
            ELSE format('{}: incomplete: {} of {} that the kernel saw are not recorded ({} of {}){}', whose, hr_size(missing_bytes), hr_size(kernel_bytes),
                        replace(hr_number_of(missing_count, 'operation'), ' operations', ''), hr_number_of(kernel_count, 'operation'),
                        CASE WHEN most IS NOT NULL AND most_bytes >= 0.5 * missing_bytes THEN format(', most of them in {}', hr_short(most)) ELSE '' END) END AS line,
       0::DOUBLE AS share
FROM (SELECT job, attempt, hr_whose(job, attempt) AS whose, sum(kernel_bytes) AS kernel_bytes, sum(kernel_count) AS kernel_count,
             sum(missing_bytes) AS missing_bytes, sum(missing_count) AS missing_count, sum(bpf_bytes) AS bpf_bytes,
             greatest(0, sum(kernel_bytes) - sum(missing_bytes) - sum(bpf_bytes)) AS shim_bytes,
             CASE $by WHEN 'file' THEN arg_max(coalesce(path, 'unknown files'), (missing_bytes, -hr_row)) END AS most, max(missing_bytes) AS most_bytes
      FROM answer GROUP BY job, attempt)
WHERE kernel_count > 0
ORDER BY job, attempt
