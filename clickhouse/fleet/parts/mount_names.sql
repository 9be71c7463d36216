    names AS (
        SELECT stream, mount, path AS mount_path, fs_type AS mount_type
        FROM mounts
        WHERE day >= today() - toUInt32($days) - 1),
