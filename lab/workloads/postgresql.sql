-- What is done to PostgreSQL: every type of column, and every statement that a capture tool sees in a way of its own.
-- long_text() is 9,600 characters that hardly shrink, so PostgreSQL stores them out of line.

-- tables
CREATE EXTENSION hstore;
CREATE EXTENSION citext;
CREATE EXTENSION ltree;
CREATE FUNCTION long_text() RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(md5(random()::text || n), '') FROM generate_series(1, 300) n$$;
CREATE TYPE mood AS ENUM ('sad', 'so, so', 'it''s "fine"', 'größer');
CREATE DOMAIN percent AS numeric(5, 2) CHECK (VALUE BETWEEN 0 AND 100);
CREATE TYPE pair AS (a int, b text);

CREATE TABLE numbers (id bigint PRIMARY KEY, i2 smallint, i4 int, i8 bigint, yes boolean, f4 real, f8 float8, price numeric(10, 2),
  wide numeric(38, 10), wider numeric(60, 20), any_digits numeric, cash money, share percent,
  counter serial, o oid);
CREATE TABLE hundreds (id int PRIMARY KEY, n numeric(5, -2));
CREATE TABLE times (id int PRIMARY KEY, d date, t0 time(0), t3 time(3), t time, tz timetz, w0 timestamp(0), w3 timestamp(3), w timestamp,
  z3 timestamptz(3), z timestamptz, i interval);
CREATE TABLE texts (id int PRIMARY KEY, c char(5), v varchar(20), t text, b bytea, u uuid, j json, jb jsonb, x xml, m mood, ci citext,
  lt ltree, h hstore);
CREATE TABLE others (id int PRIMARY KEY, ip inet, net cidr, mac macaddr, b1 bit, b8 bit(8), bv bit varying(70), p point, ir int4range,
  nr numrange, tr tstzrange, ints int[], texts text[], decimals numeric(8, 2)[], times timestamptz[], dates date[], moods mood[], ts tsvector);
CREATE TABLE extremes (id int PRIMARY KEY, d date, w timestamp, z timestamptz, n numeric, n2 numeric(8, 2), f8 float8, f4 real, t time);
CREATE TABLE defaults (id int PRIMARY KEY, n int DEFAULT 7, t text DEFAULT 'none', d numeric(6, 2) DEFAULT 1.5, b boolean DEFAULT true,
  w timestamp DEFAULT '2020-01-01 00:00:00');
CREATE TABLE key_moves (a int, b text, n int, long text, PRIMARY KEY (a, b));
CREATE TABLE uuid_keys (k uuid PRIMARY KEY, n int);
CREATE TABLE time_keys (k timestamptz, d date, x numeric(12, 4), n int, PRIMARY KEY (k, d, x));
CREATE TABLE toast (id int PRIMARY KEY, n int, long text, bytes bytea, j jsonb, many text[]);
CREATE TABLE toast_full (id int PRIMARY KEY, n int, long text, bytes bytea, j jsonb, many text[]);
ALTER TABLE toast_full REPLICA IDENTITY FULL;
CREATE TABLE bag (n int, t text);
ALTER TABLE bag REPLICA IDENTITY FULL;
CREATE TABLE by_index (id int PRIMARY KEY, code text NOT NULL UNIQUE, n int);
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_code_key;
CREATE TABLE unique_only (code text NOT NULL, n int);
CREATE UNIQUE INDEX unique_only_code ON unique_only (code);
ALTER TABLE unique_only REPLICA IDENTITY USING INDEX unique_only_code;
CREATE TABLE insert_only (id int PRIMARY KEY, t text);
ALTER TABLE insert_only REPLICA IDENTITY NOTHING;
CREATE TABLE emptied (id int PRIMARY KEY, t text);
CREATE TABLE parted (id int, d date, t text, PRIMARY KEY (id, d)) PARTITION BY RANGE (d);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2021-01-01') TO ('2030-01-01');
CREATE TABLE grown (id int PRIMARY KEY, a int, b numeric(8, 2), c text, d varchar(10));
CREATE TABLE retyped (id int PRIMARY KEY, a int, b boolean, c text);
CREATE TABLE parent (id int PRIMARY KEY, t text);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, n int);
CREATE TABLE "Mixed Case" ("Id" int PRIMARY KEY, "a b" text, "ÄÖ" int, "select" text, "before" int, "op" text, "_x" int, "a.b" int);
CREATE TABLE generated (id int PRIMARY KEY, n int, twice int GENERATED ALWAYS AS (n * 2) STORED);
CREATE TABLE nulls (id int PRIMARY KEY, a text, b int);
CREATE TABLE demanding (id int PRIMARY KEY, n int NOT NULL, t text NOT NULL, d numeric(6, 2) NOT NULL DEFAULT 1.5, b boolean NOT NULL DEFAULT true, w timestamp NOT NULL, u uuid NOT NULL, j jsonb NOT NULL,
  i8 bigint NOT NULL, f8 float8 NOT NULL, f4 real NOT NULL, ba bytea NOT NULL, t0 time NOT NULL, tz timetz NOT NULL, z timestamptz NOT NULL, dt date NOT NULL, any_digits numeric NOT NULL,
  cash money NOT NULL, bit1 bit NOT NULL, b8 bit(8) NOT NULL, ints int[] NOT NULL, texts text[] NOT NULL, h hstore NOT NULL, p point NOT NULL, i interval NOT NULL, ip inet NOT NULL, mac macaddr NOT NULL,
  x xml NOT NULL, ci citext NOT NULL, lt ltree NOT NULL, ir int4range NOT NULL, m mood NOT NULL, share percent NOT NULL, kind text DEFAULT 'plain');
CREATE TABLE demanding_long (id int PRIMARY KEY, n int, long text NOT NULL);
CREATE TABLE hot (id int PRIMARY KEY, n int);
CREATE TABLE never_loaded (id int PRIMARY KEY, t text, long text);
CREATE TABLE markers (id int PRIMARY KEY, t text, b bytea, j jsonb, many text[]);
CREATE TABLE copied (id int PRIMARY KEY, t text);
CREATE TABLE copied_bag (n int, t text);
ALTER TABLE copied_bag REPLICA IDENTITY FULL;
CREATE TABLE prepared (id int PRIMARY KEY, t text);
CREATE TABLE lab_marks (id serial PRIMARY KEY, mark text);
CREATE TABLE lab_signals (id text PRIMARY KEY, type text, data text);

-- loaded
INSERT INTO numbers VALUES (1, 1, 1, 1, true, 1.1, 1.1, 1.10, 1.1, 1.1, 1.10, 1.10, 50, DEFAULT, 1);
INSERT INTO numbers (id) VALUES (2);
INSERT INTO hundreds VALUES (1, 100), (2, -99900), (3, NULL);
INSERT INTO times VALUES (1, '2024-02-29', '10:11:12', '10:11:12.123', '10:11:12.123456', '10:11:12.5+02', '2024-02-29 10:11:12',
  '2024-02-29 10:11:12.123', '2024-02-29 10:11:12.123456', '2024-02-29 10:11:12.123+02', '2024-02-29 10:11:12.123456+02', '1 year 2 mons 3 days 04:05:06.789');
INSERT INTO times (id) VALUES (2);
INSERT INTO texts VALUES (1, 'ab', 'cd', E'e\nf\t"g"\\ ü 😀', '\x00ff10', '12345678-1234-1234-1234-1234567890ab', '{"a": 1.10, "b": [null]}',
  '{"a": 1.10, "z": {"y": "é"}}', '<a b="1">c</a>', 'so, so', 'CaSe', 'a.b', 'a=>1, b=>NULL, "c d"=>"e\"f"');
INSERT INTO texts (id) VALUES (2);
INSERT INTO others VALUES (1, '192.168.0.1/24', '10.0.0.0/8', '08:00:2b:01:02:03', B'1', B'10100101', B'101', '(1.5,-2)', '[1,5)', '(,1.50]',
  '[2024-01-01 00:00+00,)', '{1,NULL,3}', '{a,NULL,"b,c"}', '{1.10,2}', '{2024-01-01 00:00:00+00}', '{2024-01-01}', '{sad,"so, so"}', 'a fat cat');
INSERT INTO others (id) VALUES (2);
INSERT INTO extremes VALUES (1, '2024-01-01', '2024-01-01', '2024-01-01', 1.5, 1.5, 1.5, 1.5, '00:00');
INSERT INTO defaults VALUES (1, NULL, NULL, NULL, NULL, NULL);
INSERT INTO defaults (id) VALUES (2);
INSERT INTO key_moves SELECT n, 'k' || n, n, long_text() FROM generate_series(1, 10) n;
INSERT INTO uuid_keys SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, n FROM generate_series(1, 5) n;
INSERT INTO time_keys SELECT '2024-01-01 00:00:00.000001+00'::timestamptz + n * interval '1 us', '2024-01-01', n / 3.0, n FROM generate_series(1, 5) n;
INSERT INTO toast SELECT n, n, long_text(), convert_to(long_text(), 'UTF8'), jsonb_build_object('a', long_text()), ARRAY[long_text(), long_text()] FROM generate_series(1, 6) n;
INSERT INTO toast_full SELECT * FROM toast;
INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (1, 'a'), (2, NULL), (2, NULL), (NULL, NULL);
INSERT INTO by_index VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4);
INSERT INTO unique_only VALUES ('a', 1), ('b', 2), ('c', 3);
INSERT INTO insert_only VALUES (1, 'a');
INSERT INTO emptied VALUES (1, 'a'), (2, 'b');
INSERT INTO parted VALUES (1, '2020-05-05', 'a'), (2, '2021-05-05', 'b'), (3, '2020-06-06', 'c');
INSERT INTO grown VALUES (1, 1, 1.5, 'a', 'x'), (2, 2, 2.5, 'b', 'y');
INSERT INTO retyped VALUES (1, 1, true, 'a'), (2, 2, false, 'b');
INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO child VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3), (4, 3, 4);
INSERT INTO "Mixed Case" VALUES (1, 'a', 1, 's', 1, 'c', 1, 1);
INSERT INTO generated VALUES (1, 1);
INSERT INTO nulls VALUES (1, 'a', 1), (2, NULL, NULL);
INSERT INTO demanding SELECT n, n, 't' || n, n, false, '2024-01-01', ('00000000-0000-0000-0000-00000000000' || n)::uuid, '{"a": 1}', 1, 1, 1, '\x01', '01:00', '01:00+00', '2024-01-01', '2024-01-01', 1, 1, B'1', B'00000001', '{1}', '{a}', 'a=>1', '(1,1)', '1 day', '10.0.0.1', '08:00:2b:01:02:03', '<a/>', 'a', 'a', '[1,2)', 'sad', 1, 'other' FROM generate_series(1, 5) n;
INSERT INTO demanding_long SELECT n, n, long_text() FROM generate_series(1, 4) n;
INSERT INTO hot VALUES (1, 0), (2, 0);
INSERT INTO markers VALUES (1, '__debezium_unavailable_value', '\x01', '"__debezium_unavailable_value"', '{a}');
INSERT INTO copied VALUES (1, 'a');
INSERT INTO copied_bag VALUES (1, 'a');
INSERT INTO prepared VALUES (1, 'a');

-- changes
INSERT INTO numbers VALUES (3, 32767, 2147483647, 9223372036854775807, false, 3.4028235e38, 1.7976931348623157e308, 99999999.99,
  9999999999999999999999999999.9999999999, 9999999999999999999999999999999999999999.99999999999999999999, 12345678901234567890123456789.123456789,
  92233720368547758.07, 100, DEFAULT, 4294967295);
INSERT INTO numbers VALUES (4, -32768, -2147483648, -9223372036854775808, true, 1e-45, 5e-324, -99999999.99, -0.0000000001, -0.00000000000000000001,
  -1e-30, -92233720368547758.08, 0, DEFAULT, 0);
INSERT INTO numbers VALUES (9007199254740993, 0, 0, 9007199254740993, true, 16777216, 0.1, 0, 0, 0, 0, 0, 0.01, DEFAULT, 1);
INSERT INTO numbers VALUES (5, 0, 0, 0, false, -0.0, -0.0, 0.00, 1e20, 1e30, 1000000, -1.10, 1.10, DEFAULT, 5);
UPDATE numbers SET any_digits = 1.000, price = price + 0.01 WHERE id = 1;
UPDATE numbers SET i8 = NULL, f8 = NULL WHERE id = 3;
DELETE FROM numbers WHERE id = 2;
INSERT INTO times VALUES (3, '0001-01-01', '23:59:59', '23:59:59.999', '23:59:59.999999', '23:59:59.999999-12', '0001-01-01 00:00:00', '9999-12-31 23:59:59.999',
  '9999-12-31 23:59:59.999999', '1969-12-31 23:59:59.999+00', '1900-01-01 00:00:00.000001+00', '-1 year -2 days +03:00:00');
INSERT INTO times VALUES (4, '1969-12-31', '00:00', '00:00:00.001', '00:00:00.000001', '00:00:00+14', '1969-12-31 23:59:59', '1969-12-31 23:59:59.999',
  '1969-12-31 23:59:59.999999', '1582-10-10 00:00:00+00', '1500-03-01 00:00:00+00', '0.000001 second');
INSERT INTO times VALUES (5, '1582-10-10', '12:00', '12:00', '12:00', '12:00+05:45', '1582-10-10', '1500-02-28', '1500-03-01', '2024-03-31 01:30+00', '2024-10-27 00:30+00', '100 years 1000 hours');
UPDATE times SET w = w + interval '1 us', z = z + interval '1 us' WHERE id = 1;
DELETE FROM times WHERE id = 2;
INSERT INTO texts VALUES (3, '', '', '', '\x', '00000000-0000-0000-0000-000000000000', 'null', 'null', '', 'it''s "fine"', '', '', '');
INSERT INTO texts VALUES (4, ' a ', 'null', 'NULL', convert_to('text', 'UTF8'), gen_random_uuid(), '{"a":1,"a":2,  "big": 12345678901234567890123}',
  '{"big": 12345678901234567890123.1234567890123, "e": 1e5}', '<?xml version="1.0"?><a/>', 'größer', 'ß', 'Top.Ünder_x', '"a,b"=>"c=>d", ""=>""');
INSERT INTO texts VALUES (5, 'ü', '\x41', E'\u2028\u0001\r\n', '\xdeadbeef', NULL, '[1, "2", {}]', '[]', NULL, 'sad', 'a', 'b', 'x=>y');
INSERT INTO texts VALUES (6, 'x', 'true', '12.50', '\x7b7d', NULL, '"text"', '"text"', NULL, 'sad', '1', '1', '1=>1');
UPDATE texts SET t = t || 'x', jb = jb || '{"n": 1}' WHERE id = 1;
DELETE FROM texts WHERE id = 2;
INSERT INTO others VALUES (3, '::1', '2001:db8::/32', 'ff:ff:ff:ff:ff:ff', B'0', B'00000000', B'', '(0,0)', 'empty', 'empty', '(,)', '{}', '{}', '{}', '{}', '{}', '{}', '');
INSERT INTO others VALUES (4, '10.0.0.1', '1.2.3.4/32', '00:00:00:00:00:00', B'1', B'11111111', B'1000000000000000000000000000000000000000000000000000000000000000001111',
  '(1e300,1e-300)', '[1,1]', '[1.10,2.20]', '[2024-01-01,2024-01-02)', '{2147483647,-1}', '{"","null","\"q\"","{}"}', '{99999.99,-0.01}', '{2024-02-29 10:11:12.123456+00,NULL}',
  '{0001-01-01,9999-12-31}', '{"it''s \"fine\""}', 'a:1A b:2');
UPDATE others SET ints = ints || 7, b8 = B'00000001' WHERE id = 1;
DELETE FROM others WHERE id = 2;
INSERT INTO extremes VALUES (2, 'infinity', 'infinity', 'infinity', 'NaN', 'NaN', 'NaN', 'NaN', '24:00');
INSERT INTO extremes VALUES (3, '-infinity', '-infinity', '-infinity', 'Infinity', 0, 'Infinity', 'Infinity', '00:00:00');
INSERT INTO extremes VALUES (4, '4000-01-01 BC', '4000-01-01 BC', '4000-01-01 BC', '-Infinity', 0, '-Infinity', '-Infinity', '23:59:59.999999');
INSERT INTO extremes VALUES (5, '5874897-12-31', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999', 1e-100, 0, 0, 0, '12:00');
INSERT INTO extremes VALUES (6, '10000-01-01', '10000-01-01', '10000-01-01', 1e100, 0, 0, 0, '12:00');
INSERT INTO defaults VALUES (3, NULL, NULL, NULL, NULL, NULL);
INSERT INTO defaults (id) VALUES (4);
UPDATE defaults SET n = NULL, t = NULL WHERE id = 2;
UPDATE key_moves SET a = 101 WHERE a = 1;
UPDATE key_moves SET a = a + 1000 WHERE a BETWEEN 2 AND 4;
UPDATE key_moves SET b = 'moved', n = -5 WHERE a = 5;
DELETE FROM key_moves WHERE a = 6; INSERT INTO key_moves VALUES (6, 'k6', 66, long_text());
BEGIN; UPDATE key_moves SET a = 0 WHERE a = 7; UPDATE key_moves SET a = 7, b = 'k7' WHERE a = 8; UPDATE key_moves SET a = 8, b = 'k8' WHERE a = 0; COMMIT;
UPDATE key_moves SET a = 9000 WHERE a = 9; UPDATE key_moves SET a = 9 WHERE a = 9000; UPDATE key_moves SET n = 99 WHERE a = 9;
BEGIN; INSERT INTO key_moves VALUES (50, 'new', 1, 'short'); UPDATE key_moves SET a = 51 WHERE a = 50; DELETE FROM key_moves WHERE a = 51; COMMIT;
UPDATE uuid_keys SET n = n + 10 WHERE n > 2; DELETE FROM uuid_keys WHERE n = 1;
UPDATE time_keys SET n = -n WHERE n > 3; DELETE FROM time_keys WHERE n = 1; UPDATE time_keys SET k = k + interval '1 day' WHERE n = 2;

-- later
INSERT INTO lab_signals VALUES ('1', 'execute-snapshot', '{"type": "incremental", "data-collections": ["public.(?!lab_|parted$|generated).*"]}');
UPDATE toast SET n = -n WHERE id <= 4;
UPDATE toast SET n = n * 10 WHERE id <= 2;
UPDATE toast SET long = long_text() WHERE id = 3; UPDATE toast SET bytes = NULL, n = 7 WHERE id = 3;
UPDATE toast SET id = 60 WHERE id = 6; UPDATE toast SET id = 6 WHERE id = 60; UPDATE toast SET n = 66 WHERE id = 6;
INSERT INTO toast SELECT 7, 7, long_text(), '\x00', '{}', NULL; UPDATE toast SET n = 8 WHERE id = 7;
DELETE FROM toast WHERE id = 5;
BEGIN; UPDATE toast SET long = 'short' WHERE id = 1; UPDATE toast SET n = 5 WHERE id = 1; COMMIT;
UPDATE toast_full SET n = -n WHERE id <= 4; UPDATE toast_full SET id = 60 WHERE id = 6; DELETE FROM toast_full WHERE id = 5; UPDATE toast_full SET bytes = NULL WHERE id = 1;
INSERT INTO bag VALUES (3, 'c'), (3, 'c'), (4, 'd');
DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE n = 1 LIMIT 1);
UPDATE bag SET t = 'changed' WHERE ctid IN (SELECT ctid FROM bag WHERE n = 2 LIMIT 1);
BEGIN; INSERT INTO bag VALUES (3, 'c'); DELETE FROM bag WHERE n = 4; INSERT INTO bag VALUES (4, 'd'), (4, 'd'); COMMIT;
UPDATE bag SET n = 5 WHERE n IS NULL; UPDATE bag SET t = 'c' WHERE n = 3; DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag WHERE n = 3 LIMIT 1);
UPDATE by_index SET n = 10 WHERE id = 1; UPDATE by_index SET code = 'bb' WHERE id = 2; DELETE FROM by_index WHERE id = 3; UPDATE by_index SET id = 40 WHERE id = 4;
INSERT INTO by_index VALUES (5, 'e', 5);
UPDATE unique_only SET n = 10 WHERE code = 'a'; UPDATE unique_only SET code = 'bb' WHERE code = 'b'; DELETE FROM unique_only WHERE code = 'c'; INSERT INTO unique_only VALUES ('c', 33);
INSERT INTO insert_only VALUES (2, 'b'), (3, 'c');
INSERT INTO emptied VALUES (3, 'c'); TRUNCATE emptied; INSERT INTO emptied VALUES (1, 'again'), (4, 'd');
BEGIN; INSERT INTO emptied VALUES (5, 'e'); DELETE FROM emptied WHERE id = 4; COMMIT;
UPDATE parted SET t = 'aa' WHERE id = 1; UPDATE parted SET d = '2022-01-01' WHERE id = 3; DELETE FROM parted WHERE id = 2; INSERT INTO parted VALUES (4, '2025-01-01', 'd');
ALTER TABLE grown ADD COLUMN e int; INSERT INTO grown VALUES (3, 3, 3.5, 'c', 'z', 3);
ALTER TABLE grown ALTER a TYPE bigint; UPDATE grown SET a = 9000000000 WHERE id = 1;
ALTER TABLE grown ALTER b TYPE numeric(12, 2); INSERT INTO grown VALUES (4, 4, 1234567890.12, 'd', 'w', 4);
ALTER TABLE grown DROP COLUMN c; INSERT INTO grown VALUES (5, 5, 5.5, 'v', 5);
ALTER TABLE grown ALTER d TYPE text; UPDATE grown SET d = repeat('long', 10) WHERE id = 2;
ALTER TABLE grown ADD COLUMN f text; UPDATE grown SET f = 'f' || id;
ALTER TABLE retyped ALTER a TYPE text; UPDATE retyped SET a = 'text' WHERE id = 1; INSERT INTO retyped VALUES (3, '007', true, 'c');
ALTER TABLE retyped ALTER b TYPE int USING b::int; UPDATE retyped SET b = 5 WHERE id = 2; UPDATE retyped SET c = c || '!';
DELETE FROM parent WHERE id = 1; UPDATE parent SET id = 20 WHERE id = 2;
UPDATE "Mixed Case" SET "a b" = 'changed', "before" = 2 WHERE "Id" = 1; INSERT INTO "Mixed Case" VALUES (2, 'b', 2, 's', 2, 'd', 2, 2); UPDATE "Mixed Case" SET "Id" = 3 WHERE "Id" = 2;
INSERT INTO generated VALUES (2, 2); UPDATE generated SET n = 5 WHERE id = 1;
UPDATE nulls SET a = NULL WHERE id = 1; UPDATE nulls SET b = 2 WHERE id = 2; INSERT INTO nulls VALUES (3, NULL, 3); UPDATE nulls SET b = NULL WHERE id = 3;
UPDATE demanding_long SET id = 10 WHERE id = 1; UPDATE demanding_long SET n = 20 WHERE id = 2; UPDATE demanding_long SET id = 20 WHERE id = 2; DELETE FROM demanding_long WHERE id = 3;
UPDATE demanding SET n = 20, t = 'tt' WHERE id = 2; DELETE FROM demanding WHERE id = 1; UPDATE demanding SET id = 30 WHERE id = 3; DELETE FROM demanding WHERE id = 2; INSERT INTO demanding VALUES (1, 1, 'again', 1, true, '2025-01-01', '00000000-0000-0000-0000-000000000009', '[]', 1, 1, 1, '\x01', '01:00', '01:00+00', '2024-01-01', '2024-01-01', 1, 1, B'1', B'00000001', '{1}', '{a}', 'a=>1', '(1,1)', '1 day', '10.0.0.1', '08:00:2b:01:02:03', '<a/>', 'a', 'a', '[1,2)', 'sad', 1, 'other'); DELETE FROM demanding WHERE id = 30;
UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; UPDATE hot SET n = n + 1 WHERE id = 1; 
BEGIN; UPDATE hot SET n = 1 WHERE id = 2; SAVEPOINT s; UPDATE hot SET n = 2 WHERE id = 2; ROLLBACK TO s; UPDATE hot SET n = n + 10 WHERE id = 2; COMMIT;
BEGIN; INSERT INTO hot VALUES (3, 3); ROLLBACK;
BEGIN; DELETE FROM hot WHERE id = 2; INSERT INTO hot VALUES (2, 22); DELETE FROM hot WHERE id = 2; INSERT INTO hot VALUES (2, 23); COMMIT;
INSERT INTO hot SELECT n, n FROM generate_series(100, 400) n; DELETE FROM hot WHERE id BETWEEN 200 AND 350;
INSERT INTO hot VALUES (1, -1) ON CONFLICT (id) DO UPDATE SET n = hot.n + 1000;
INSERT INTO never_loaded VALUES (1, 'a', long_text()), (2, 'b', long_text()); UPDATE never_loaded SET t = 'aa' WHERE id = 1;
UPDATE toast SET many = ARRAY['x'] WHERE id = 1; INSERT INTO markers VALUES (2, 'x __debezium_unavailable_value', convert_to('__debezium_unavailable_value', 'UTF8'), '{"a": "__debezium_unavailable_value"}', '{__debezium_unavailable_value,b}');
COPY copied FROM PROGRAM 'seq 10 60 | sed "s/.*/&,t&/"' WITH (FORMAT csv); UPDATE copied SET t = 'u' WHERE id < 20; DELETE FROM copied WHERE id > 55;
COPY copied_bag FROM PROGRAM 'seq 6 | sed "s/.*/1,a/"' WITH (FORMAT csv); DELETE FROM copied_bag WHERE ctid IN (SELECT ctid FROM copied_bag LIMIT 2);
BEGIN; INSERT INTO prepared VALUES (2, 'b'); PREPARE TRANSACTION 'two'; INSERT INTO prepared VALUES (3, 'c'); COMMIT PREPARED 'two';
BEGIN; INSERT INTO prepared VALUES (4, 'd'); PREPARE TRANSACTION 'gone'; ROLLBACK PREPARED 'gone';
SELECT pg_logical_emit_message(true, 'app', 'in a transaction'); SELECT pg_logical_emit_message(false, 'app', 'outside');
BEGIN; SELECT pg_logical_emit_message(true, 'app', 'beside rows'); UPDATE hot SET n = 5 WHERE id = 100; COMMIT;
