package history

// The schema, with types that SQLite and PostgreSQL both have. Times are seconds since 1970, UTC.
var schema = []string{
	`create table meta(key text primary key, value text not null)`,
	`create table node(id bigint primary key, guid text not null, type bigint not null, t bigint not null)`,
	`create unique index node_guid on node(guid)`,
	`create table port(id bigint primary key, node bigint not null references node, num bigint not null, t bigint not null, unique(node, num))`,
	// every: seconds between the cycles of the recorder, 0: not known. sum: of all rows of the cycle.
	`create table cycle(t bigint primary key, every bigint not null, source text not null, missing text not null, keyframe bigint not null, sum bigint not null)`,
	`create table keyframe(t bigint primary key, data bytea not null)`,
	`create table delta(t bigint primary key, data bytea not null)`,
	// peer: of events of links, the port at the other end.
	`create table event(t bigint not null, n bigint not null, kind text not null, node bigint, port bigint, peer bigint, subject text not null, was text not null, now text not null, primary key(t, n))`,
	`create index event_port on event(port, t)`,
	`create index event_peer on event(peer, t)`,
	`create index event_node on event(node, t)`,
	`create table link(a bigint not null, b bigint not null, t bigint not null, till bigint, primary key(a, t))`,
	`create index link_b on link(b, t)`,
	// word: names of counters ("counter") and of kinds of samples ("sample"), which rows have by id.
	`create table word(kind text not null, id bigint not null, name text not null, primary key(kind, id))`,
	// cable: by the serial number of its module or cable; a and b are ports, b null where the other end is not known.
	`create table cable(serial text not null, a bigint not null, b bigint, t bigint not null, till bigint, part text not null, primary key(serial, a, t))`,
	`create index cable_a on cable(a, t)`,
	`create index cable_b on cable(b, t)`,
	// err5, err60, err_day: counters that grew, by 5 minutes, hours and days from t on. most: in 5 minutes. hours: in how many of them.
	`create table err5(port bigint not null, t bigint not null, counter bigint not null, n bigint not null, primary key(port, t, counter))`,
	`create table err60(port bigint not null, t bigint not null, counter bigint not null, n bigint not null, most bigint not null, primary key(port, t, counter))`,
	`create table err_day(t bigint not null, port bigint not null, counter bigint not null, hours bigint not null, n bigint not null, primary key(t, port, counter))`,
	// ber: bit error rates where they are not normal or have changed; up_s: seconds since the link came up, -1: not known.
	`create table ber(port bigint not null, t bigint not null, up_s bigint not null, raw double precision, effective double precision, symbol double precision, grade bigint not null, primary key(port, t))`,
	// hour: of the day that is not yet in tiles, a byte a port, by port.id. tile: 256 ports x 24 hours. day: a mean and a largest byte a port, of days older than tiles are kept.
	`create table hour(t bigint not null, kind bigint not null, data bytea not null, primary key(t, kind))`,
	`create table tile(t bigint not null, kind bigint not null, block bigint not null, data bytea not null, primary key(t, kind, block))`,
	`create table day(t bigint not null, kind bigint not null, block bigint not null, data bytea not null, primary key(t, kind, block))`,
	// finding: open from t to till; key and subject as audits print them; severity as audit.Severity. checked: when an audit judged it last.
	`create table finding(key text not null, job text not null, t bigint not null, till bigint, checked bigint not null, severity bigint not null, node bigint, port bigint, subject text not null, message text not null, primary key(key, job, t))`,
	`create index finding_port on finding(port, t)`,
	`create index finding_node on finding(node, t)`,
	`create table ack(pattern text not null, t bigint not null, until bigint not null, who text not null, reason text not null, till bigint, primary key(pattern, t))`,
	// change: plans, remedies and their outcome; action: plan, apply, confirm, revert, remedy, restore, log.
	`create table change(t bigint not null, n bigint not null, action text not null, subject text not null, who text not null, outcome text not null, node bigint, port bigint, primary key(t, n))`,
	// routes: of cycles with forwarding tables, a snapshot with them, or the time of the row that has the same (8 bytes).
	`create table routes(t bigint primary key, data bytea not null)`,
	// pending: what the next recorder goes on with: the counters that were read last, and the samples of the hour.
	`create table pending(name text primary key, t bigint not null, data bytea not null)`,
	// checksum: of each table, the number of the rows of a day and the sum of their hashes, modulo 2^64.
	`create table checksum(name text not null, day bigint not null, n bigint not null, sum bigint not null, primary key(name, day))`,
}

// withoutRowid are the tables of small rows, which SQLite keeps in their primary key alone.
var withoutRowid = []string{"err5", "err60", "err_day", "checksum", "word", "link"}
