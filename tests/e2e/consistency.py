# SPDX-License-Identifier: Apache-2.0
"""SQL that finds where rollups or file records tell another story than the events: no row, no fault."""

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

RECORDS_AGAINST_EVENTS = """
WITH e AS (SELECT node, proc, path, api,
                  count(*) FILTER (WHERE class = 'read' AND ret >= 0) AS reads,
                  count(*) FILTER (WHERE class = 'write' AND ret >= 0) AS writes,
                  coalesce(sum(bytes) FILTER (WHERE class = 'read'), 0) AS read_bytes,
                  coalesce(sum(bytes) FILTER (WHERE class = 'write'), 0) AS written_bytes
           FROM events
           WHERE path IS NOT NULL AND path2 IS NULL AND api IN ('posix', 'stdio') GROUP BY ALL),
     f AS (SELECT node, proc, path, api, sum(reads) AS reads, sum(writes) AS writes,
                  sum(bytes_read) AS read_bytes, sum(bytes_written) AS written_bytes
           FROM file_records GROUP BY ALL)
SELECT e.*, f.reads AS f_reads, f.writes AS f_writes, f.read_bytes AS f_read_bytes,
       f.written_bytes AS f_written_bytes
FROM e LEFT JOIN f ON e.node = f.node AND e.proc = f.proc AND e.path = f.path AND e.api = f.api
WHERE e.reads + e.writes > 0
  AND (e.reads IS DISTINCT FROM f.reads OR e.writes IS DISTINCT FROM f.writes
       OR e.read_bytes IS DISTINCT FROM f.read_bytes
       OR e.written_bytes IS DISTINCT FROM f.written_bytes)
LIMIT 20"""
