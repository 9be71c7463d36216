# SPDX-License-Identifier: Apache-2.0
"""SQL that finds where rollups or file records contradict the events: no row, no fault."""

ROLLUPS_AGAINST_EVENTS = """
WITH e AS (SELECT node, proc, op, scope, count(*) AS n, coalesce(sum(bytes), 0) AS b,
                  count(errno) AS err
           FROM events GROUP BY ALL),
     r AS (SELECT node, proc, op, scope, sum(count) AS n, coalesce(sum(bytes), 0) AS b,
                  sum(errors) AS err
           FROM rollups GROUP BY ALL)
SELECT e.op AS event_op, r.op AS rollup_op, e.scope, e.n AS events, r.n AS in_rollups,
       e.b AS event_bytes, r.b AS rollup_bytes, e.err AS event_errors, r.err AS rollup_errors
FROM e FULL JOIN r ON e.node = r.node AND e.proc = r.proc AND e.op = r.op AND e.scope = r.scope
WHERE e.n IS DISTINCT FROM r.n OR e.b IS DISTINCT FROM r.b OR e.err IS DISTINCT FROM r.err
LIMIT 20"""

# Failed reads and writes count as calls of no bytes, failed opens do not count as opens. A copy
# between files is one event, but a read of one file and a write of the other. Single characters
# of stdio are in the records only.
RECORDS_AGAINST_EVENTS = """
WITH e AS (SELECT node, proc, path, api,
                  count(*) FILTER (WHERE class = 'open' AND ret >= 0) AS opens,
                  count(*) FILTER (WHERE class = 'read') AS reads,
                  count(*) FILTER (WHERE class = 'write') AS writes,
                  count(*) FILTER (WHERE class = 'seek') AS seeks,
                  count(*) FILTER (WHERE class = 'stat') AS stats,
                  count(*) FILTER (WHERE class = 'sync') AS syncs,
                  coalesce(sum(bytes) FILTER (WHERE class = 'read'), 0) AS bytes_read,
                  coalesce(sum(bytes) FILTER (WHERE class = 'write'), 0) AS bytes_written
           FROM events WHERE path IS NOT NULL GROUP BY ALL),
     copied AS (SELECT path FROM events WHERE bytes > 0 AND path2 IS NOT NULL
                UNION SELECT path2 FROM events WHERE bytes > 0 AND path2 IS NOT NULL),
     f AS (SELECT node, proc, path, api, sum(opens) AS opens, sum(reads) AS reads,
                  sum(writes) AS writes, sum(seeks) AS seeks, sum(stats) AS stats,
                  sum(syncs) AS syncs, sum(bytes_read) AS bytes_read,
                  sum(bytes_written) AS bytes_written
           FROM file_records GROUP BY ALL)
SELECT * FROM e LEFT JOIN f USING (node, proc, path, api)
WHERE path NOT IN (FROM copied)
  AND ((e.opens, e.seeks, e.stats, e.syncs) IS DISTINCT FROM (f.opens, f.seeks, f.stats, f.syncs)
       OR f.reads < e.reads OR f.writes < e.writes OR f.bytes_read < e.bytes_read
       OR f.bytes_written < e.bytes_written
       OR (api <> 'stdio' AND (e.reads, e.writes, e.bytes_read, e.bytes_written)
                       IS DISTINCT FROM (f.reads, f.writes, f.bytes_read, f.bytes_written)))
LIMIT 20"""
