-- What took most of the longest waits
WITH parts AS (
    SELECT *, row_number() OVER (ORDER BY hr_row) AS place, waited_s / nullif(percent, 0) * 100 AS whole_s FROM answer WHERE waited_s > 0)
SELECT line, CASE place WHEN 0 THEN 0::DOUBLE END AS share FROM (
    SELECT 0 AS place,
           format('{} took {}: {}', CASE WHEN $by = 'wait' THEN hr_number_of(count(*), 'long wait') ELSE 'the longest waits for data' END,
                  hr_duration(1e9 * max(whole_s)),
                  string_agg(format('{} {}', hr_percent(percent), hr_short(regexp_replace(what, '^\((.*)\)$', '\1'))), ', ' ORDER BY place) FILTER (place <= 3 AND (place = 1 OR percent >= 1))) AS line
    FROM parts HAVING count(*) > 0
    UNION ALL
    SELECT row_number() OVER (), line FROM hr_because('waits')
    WHERE $rank IS NULL AND (SELECT count(*) FROM jobs) = 1 AND EXISTS (FROM parts))
ORDER BY place
