package tour

// step is one thing to be typed.
type step struct {
	title  string
	asks   string // what to do
	hint   string // after a wrong try
	answer string // what one may type
	done   string // said when it is done
	check  func(*Tour, Seen) error

	name, kind string // the global that later steps speak of, and its type; "": none
	keep       string // what makes it
}

const intro = `Welcome to fabsh. Eight steps, each a line or two to be typed.

A colleague writes: "Since this morning the jobs of node-0005 are slow." You are to find out why, and to do something about it. The fabric is simulated, in this program: nothing of what you type reaches a real one, and no time passes while a command waits.

TAB completes, Up brings back, help(x) or x? explains. Besides, there are these words: hint, skip, back, again; quit leaves, and fabsh tour goes on where you left.`

const outro = `That was the tour. You found a bad cable, proved a way around it, and took it. The prompt is yours now: try sim.unlink("leaf-1/5") and audit, or f.matrix("leaf", "spine"). quit leaves.

  fabsh --help           commands: audit, report, route, change, top, exporter ...
  fabsh doc              all that a script can say; help() here
  fabsh examples         commands to copy
  fabsh -F sim           this prompt, on a fabric without faults`

// bad is a name for the port at the fault.
const (
	badSwitch, badPort   = "leaf-2", 6
	peerSwitch, peerPort = "spine-2", 2
	lid                  = 14 // of node-0002, which badSwitch reaches by way of badPort
)

var steps = []step{
	{
		title: "What is there",
		asks: `discover() sweeps the fabric: it asks each node who it is and who is next to it. Keep what it returns:

  f = discover()`,
		hint:   "call discover, with the brackets, and give the fabric a name.",
		answer: "f = discover()",
		done:   `The prompt knows the fabric now, and tells how old that picture is. f.switches, f.cas, f.links and f.ports are tables: type one whenever you like. Attributes send nothing; functions and methods may.`,
		check:  hasFabric,
		name:   "f", kind: "fabric", keep: "f = discover()",
	},
	{
		title: "Whom to ask",
		asks: `node-0005 is on the switch leaf-2. Ask that switch for its NodeInfo:

  smp_get("NodeInfo", "leaf-2")

The target may as well be its LID, 2, its GUID, a directed route such as dr("0,1,5,2"), or a node or port of f.`,
		hint:   `the first argument is the attribute, "NodeInfo", the second whom to ask: "leaf-2", with the quotes.`,
		answer: `smp_get("NodeInfo", "leaf-2")`,
		done:   `A list of targets gives a list of answers, all asked at once: smp_get("NodeInfo", f.switches). What does not answer is an error in its place, and the exit status of a script tells.`,
		check:  asksNodeInfo,
	},
	{
		title: "Tables",
		asks: `node-0005 sends much to node-0002, which has LID 14. By which port does leaf-2 forward that? get_lft reads a switch's forwarding table, LID to port:

  get_lft("leaf-2")[14]`,
		hint:   `get_lft("leaf-2") is the whole table; [14] behind it is the entry of LID 14.`,
		answer: `get_lft("leaf-2")[14]`,
		done:   "Port 6, and f.node(\"leaf-2\").ports[6].peer tells where that leads: to spine-2. get_routes() are the tables of all switches; get_routes().trace(17, 14) is the whole way.",
		check:  readsTable,
	},
	{
		title: "Counters",
		asks: `Look at the counters of that port. perf_rates reads them twice, 10 s apart, and gives what they did meanwhile:

  perf_rates("leaf-2/6")`,
		hint:   `a port is "NAME/NUMBER": "leaf-2/6". perf_get("PortCounters", "leaf-2/6") is how they stand.`,
		answer: `perf_rates("leaf-2/6")`,
		done:   "Symbol errors, 20 a second: a cable or a transceiver that goes bad. Rates tell what happens now; totals only that it happened once.",
		check:  readsCounters,
	},
	{
		title: "A fault found by an audit",
		asks: `Is that all? An audit looks everywhere, says what it could not look at, and reads what it found a second time before it tells:

  audit counters

Without names all audits run.`,
		hint:   "audit is a command, with words and no brackets, as in a Unix shell: audit, or audit counters.",
		answer: "audit counters",
		done:   "One link, told once, with both ends and the figures that make it a fault; nothing else. In a Unix shell that is fabsh audit, whose exit status is 1 when it found something: that is for cron.",
		check:  finds,
	},
	{
		title: "A policy verified",
		asks: `Until somebody exchanges the cable, packets are to go around it. Compute tables that leave it out, by up*/down*, and follow all packets through them before anybody uses them:

  t = f.graph(exclude=[f.node("leaf-2").ports[6]]).route("updn")
  t.verify()`,
		hint:   "f.graph(exclude=[PORT]) leaves a link out, .route(ENGINE) computes tables, and .verify() of these tables judges them. Engines are \"updn\", \"ftree\", \"minhop\" and others.",
		answer: `t = f.graph(exclude=[f.node("leaf-2").ports[6]]).route("updn"); t.verify()`,
		done:   "ok: all pairs reach each other, nothing loops, and no cycle of links can deadlock. A policy may be a script of yours, too; fabsh route runs it, and verifies.",
		check:  verifies,
		name:   "t", kind: "routes", keep: `t = f.graph(exclude=[f.node("leaf-2").ports[6]]).route("updn")`,
	},
	{
		title: "A plan, proven and applied",
		asks: `From the tables that are there to those that you want: a plan is an order of writes in which packets arrive at every step, whichever of a round's writes comes first. Look at it, then carry it out on this twin of a fabric:

  p = t.plan(get_routes())
  p
  p.apply()`,
		hint:   "t.plan(get_routes()) is the plan from the tables in force to t; its method apply() makes the change.",
		answer: "p = t.plan(get_routes()); p.apply()",
		done:   "Done: each block was read back, and nothing goes over that link any more. On a real fabric it is fabsh change plan and fabsh --write change apply, with a guard process that takes the change back unless you confirm it.",
		check:  applies,
	},
	{
		title: "A report",
		asks: `Tell your colleague. A page that opens from a mail, with findings, topology and routing:

  report html --out fabric.html

Or what the tools of infiniband-diags print: iblinkinfo, ibqueryerrors, sminfo.`,
		hint:   "these are words as in a Unix shell, without brackets: report html --out FILE, or iblinkinfo.",
		answer: "iblinkinfo",
		done:   "The cable is still bad: the report says so. But nobody waits for it.",
		check:  reports,
	},
}
