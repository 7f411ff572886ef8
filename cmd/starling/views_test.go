package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/validators"
	answers "github.com/starling-network/starling/cmd/starling/market"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/standing"
)

// funds are the uzen that every account of a network of one's own begins with.
const funds = 1_000_000_000_000

// shows runs a command that must succeed in both forms: what it prints for programs goes into answer, and what it
// prints for people is returned, its rows by their first words.
func shows(t *testing.T, answer any, args ...string) (rows map[string][]string) {
	t.Helper()
	does(t, answer, args...)
	code, table, stderr := starling(t, append(args, "-o", "wide")...)
	if code != 0 {
		t.Fatalf("%v: exit %d\n%s", args, code, stderr)
	}
	rows = map[string][]string{}
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 0 {
			rows[words[0]] = words
		}
	}
	return rows
}

// has reports whether a row has words, one after another.
func has(row []string, words ...any) bool {
	return strings.Contains(" "+strings.Join(row, " ")+" ", " "+strings.TrimSpace(fmt.Sprintln(words...))+" ")
}

// views asks for all views of a network of one validator, three workers and two verifiers on which a job was trained,
// and compares them with the summary of the job.
func views(t *testing.T, dir, network string, s rundir.Summary) {
	var nodes struct{ Nodes []api.Participant }
	rows := shows(t, &nodes, "market", "nodes", "--network", network)
	by := map[string][]string{} // accounts, by their roles
	for _, n := range nodes.Nodes {
		role := strings.Join(n.Roles, ", ")
		by[role] = append(by[role], n.ID)
		if role == "" { // the consumer only says where it is reached
			continue
		}
		if n.Price != market.DefaultPrice || n.Stake != registry.DefaultStake || !n.Offers || n.Jailed || len(n.Jobs) > 0 {
			t.Errorf("%+v", n)
		}
		if !has(rows[n.ID], role, n.Class) ||
			!has(rows[n.ID], terminal.Zen(market.DefaultPrice), "ZEN", true, terminal.Zen(registry.DefaultStake), false) {
			t.Errorf("%v, of %+v", rows[n.ID], n)
		}
	}
	if len(by["worker"]) != 3 || len(by["verifier"]) != 2 || len(by[""]) != 1 {
		t.Fatalf("who takes part: %v", by)
	}
	viewsOfMarket(t, network, by)
	viewsOfStakes(t, dir, network, by)
	delegates(t, dir, network)
	viewsOfValidator(t, dir, network)
	viewsOfJob(t, dir, network, s, by)
}

// viewsOfMarket looks at what is offered, and at an order that waits.
func viewsOfMarket(t *testing.T, network string, by map[string][]string) {
	t.Helper()
	var prices struct{ Prices []inspect.Prices }
	rows := shows(t, &prices, "market", "price", "--network", network)
	for i, role := range []string{"worker", "verifier"} {
		n := len(by[role])
		p := prices.Prices[i]
		hour := p.Hourly
		if p.Hourly = 0; p != (inspect.Prices{Role: role, Offers: n, Slots: n, Lowest: market.DefaultPrice,
			Median: market.DefaultPrice, Highest: market.DefaultPrice}) || role == "worker" && hour == 0 {
			t.Errorf("%+v, with %d for an hour", p, hour)
		}
		price := terminal.Zen(market.DefaultPrice) + " ZEN"
		if !has(rows[role], role, n, n, price, price, price) || hour > 0 && !has(rows[role], terminal.Zen(hour), "ZEN") {
			t.Errorf("%v", rows[role])
		}
	}
	var offers struct{ Offers []answers.Offered }
	rows = shows(t, &offers, "market", "offers", "--network", network)
	if len(offers.Offers) != 5 {
		t.Errorf("offers: %+v", offers)
	}
	for _, o := range offers.Offers {
		if !slices.Contains(by[o.Role], o.ID) || o.Price != market.DefaultPrice || o.Slots != 1 || o.Since == 0 ||
			o.Tier != "none" || o.Cover == 0 {
			t.Errorf("%+v", o)
		}
		if row := rows[o.ID]; !has(row, o.Role, terminal.Zen(o.Price)) || !has(row, 1, o.Class, "none", "-", "-", "-") ||
			!has(row, terminal.Zen(o.Cover), "ZEN", o.Since) {
			t.Errorf("%v, of %+v", row, o)
		}
	}
}

// waits orders a job for which there is no place, sees why it waits, and takes it back.
func waits(t *testing.T, job, dir, network string) {
	t.Helper()
	home := filepath.Join(dir, "consumer")
	c := command(t, "train", job, "--dir", filepath.Join(dir, "waits"), "--network", network, "--home", home, "--set",
		"resources.placement.regions=[eu]", "--set", "training.max_steps=20")
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var orders struct{ Orders []answers.Ordered }
	for len(orders.Orders) == 0 {
		select {
		case err := <-ended:
			t.Fatalf("it does not wait: %v\n%s", err, said.String())
		default:
			does(t, &orders, "market", "orders", "--network", network)
		}
	}
	o, rows := orders.Orders[0], shows(t, &orders, "market", "orders", "--network", network)
	if o.Why != string(market.ConditionsUnmet) || o.Budget != 25e6 || o.Workers != 3 || o.Most != 3 || o.Since == 0 ||
		o.Verifiers != 2 {
		t.Errorf("%+v", o)
	}
	if row := rows[o.Job]; !has(row, o.Job, "25.00 ZEN", o.Coin.Text(o.PriceCap), "3",
		"not enough offers meet the conditions", 2) ||
		!has(row, o.Consumer) {
		t.Errorf("%v, of %+v", row, o)
	}
	_ = c.Process.Signal(syscall.SIGINT)
	<-ended
	if code, out, stderr := starling(t, "job", "cancel", o.Job, "--home", home, "--network", network); code != 0 ||
		!strings.HasPrefix(out, "cancelled "+o.Job+"; ") || !strings.HasSuffix(out, " ZEN were released\n") {
		t.Errorf("cancel: exit %d\n%s%s", code, out, stderr)
	}
	if does(t, &orders, "market", "orders", "--network", network); len(orders.Orders) > 0 {
		t.Errorf("it is taken back, and waits: %+v", orders)
	}
}

// viewsOfStakes looks at stakes, and changes one.
func viewsOfStakes(t *testing.T, dir, network string, by map[string][]string) {
	t.Helper()
	var account session.Account
	home := filepath.Join(dir, "worker-1")
	does(t, &account, "account", "stake", "add", "10", "--home", home)
	if account.Stake != registry.DefaultStake+10e6 || !afterFees(account.Balance, funds-account.Stake+paidTo(t, home)) {
		t.Errorf("with more stake: %+v", account)
	}
	does(t, &account, "account", "stake", "remove", "5", "--home", home)
	if account.Leaving != 5e6 || account.LeavesAt == 0 || account.LeavesIn <= 0 {
		t.Errorf("with stake that leaves: %+v", account)
	}
	var stakes struct{ Stakes []inspect.Stake }
	rows := shows(t, &stakes, "account", "stake", "list", "--network", network)
	if len(stakes.Stakes) != 6 || stakes.Stakes[0].Account != account.Address {
		t.Errorf("the largest stake is not first: %+v", stakes)
	}
	for _, s := range stakes.Stakes {
		want := inspect.Stake{Account: s.Account, Roles: s.Roles}
		words := []any{"-", "0.00", "0.00", "0.00", false, "-"}
		if len(s.Roles) > 0 {
			want.Stake = registry.DefaultStake
			words = []any{s.Roles[0], "100.00", "0.00", "0.00", false, "-"}
		}
		if s.Account == account.Address {
			want.Stake, want.Leaving, want.LeavesAt = account.Stake, account.Leaving, account.LeavesAt
			words = []any{"worker", "110.00", "0.00", "5.00", false, account.LeavesAt}
		}
		if fmt.Sprint(s) != fmt.Sprint(want) || !slices.Contains(by[strings.Join(s.Roles, "")], s.Account) ||
			!has(rows[s.Account], words...) {
			t.Errorf("%+v, wanted %+v\n%v", s, want, rows[s.Account])
		}
	}
	for _, of := range [][]string{{"--network", network}, {"--home", home}} {
		var slashes struct{ Slashes []rundir.Explanation }
		if rows := shows(t, &slashes, append([]string{"account", "stake", "slashes"},
			of...)...); slashes.Slashes == nil || len(slashes.Slashes) > 0 || len(rows) != 1 {
			t.Errorf("slashes where nobody lied: %+v\n%v", slashes, rows)
		}
	}
}

// delegates puts coins of the consumer behind a worker, and takes them back before they are shares.
func delegates(t *testing.T, dir, network string) {
	t.Helper()
	worker, consumer := filepath.Join(dir, "worker-1"), filepath.Join(dir, "consumer")
	var terms struct {
		Commission uint32 `json:"commission_ppm"`
		From       int64
	}
	does(t, &terms, "account", "delegate", "accept", "2.5%", "--home", worker)
	var w session.Account
	does(t, &w, "account", "show", "--home", worker)
	var held struct{ Delegations []inspect.Delegation }
	does(t, &held, "account", "delegate", "add", w.Address, "20", "--home", consumer, "--network", network)
	if d := held.Delegations; len(d) != 1 || d[0].Joining != 20e6 || d[0].JoinsAt == 0 || d[0].Participant != w.Address ||
		d[0].Stake+d[0].Leaving > 0 || terms.Commission != 25_000 || terms.From == 0 {
		t.Errorf("%+v by %+v", d, terms)
	}
	var pools struct{ Pools []inspect.Pool }
	rows := shows(t, &pools, "account", "delegate", "pools", "--network", network)
	own := w.Stake - w.Leaving
	if p := pools.Pools; len(p) != 1 || p[0].Own != own || p[0].Room != own/2-20e6 || p[0].Joining != 20e6 ||
		!has(rows[w.Address], "2.5%", terminal.Zen(own), "0.00", "0.00", terminal.Zen(own/2-20e6), 1) {
		t.Errorf("%+v, %v", p, rows)
	}
	rows = shows(t, &held, "account", "delegate", "list", "--in", "--home", worker)
	if len(held.Delegations) != 1 || !has(rows[w.Address], held.Delegations[0].Delegator, "0.00", "20.00", "0.00") {
		t.Errorf("%+v, %v", held, rows)
	}
	does(t, &held, "account", "delegate", "remove", w.Address, "all", "--home", consumer, "--network", network)
	if len(held.Delegations) > 0 {
		t.Errorf("%+v", held)
	}
}

// paidTo is what the account of a folder was paid.
func paidTo(t *testing.T, home string) uint64 {
	t.Helper()
	var e struct {
		Received uint64 `json:"received_uzen"`
		Lost     uint64 `json:"lost_uzen"`
		Days     []api.EarnedDay
		Receipts []struct {
			Role, Kind, Why string
			Amount          uint64
			Arithmetic      []string
		}
	}
	rows := shows(t, &e, "worker", "earnings", "--home", home)
	sum := uint64(0)
	for _, r := range e.Receipts {
		sum += r.Amount
		if r.Role == "verifier" && r.Amount == 0 { // it found a planted fault, whose worker showed it before it was settled
			continue
		}
		if kind := map[string]string{"worker": "work", "verifier": "audit"}[r.Role]; r.Kind != kind ||
			r.Why != "the work is verified" || len(r.Arithmetic) != 2 {
			t.Errorf("%s: %+v", home, r)
		}
	}
	for word, row := range rows {
		if strings.HasPrefix(word, "starling1") && has(row, "lost") &&
			!has(row, "received", terminal.Zen(sum), "ZEN and lost 0.00 ZEN of its stake") {
			t.Errorf("%s: %v, of receipts of %d uzen", home, row, sum)
		}
	}
	today := uint64(0)
	for _, d := range e.Days {
		if _, err := time.Parse(time.DateOnly, d.Day); err == nil {
			today += d.ReceivedUzen
		}
	}
	drawn := sum > 0 || strings.HasPrefix(filepath.Base(home), "verifier") // or no audit was drawn for it
	if !drawn || e.Received != sum || e.Lost != 0 || today != sum {
		t.Errorf("%s: %+v", home, e)
	}
	return sum
}

// viewsOfValidator looks at the only validator of a network, of which no transaction paid a fee.
func viewsOfValidator(t *testing.T, dir, network string) {
	t.Helper()
	home := filepath.Join(dir, "validator-0")
	var duties struct {
		Duties                   []inspect.BlockParticipation
		Signed, Missed, Proposed int
	}
	rows := shows(t, &duties, "validator", "duties", "--home", home, "--blocks", "5")
	if len(duties.Duties) != 5 || duties.Signed != 5 || duties.Missed != 0 || duties.Proposed != 5 ||
		!has(rows["5"], "5 signed, 0 missed, 5 proposed") {
		t.Errorf("%+v\n%v", duties, rows)
	}
	for i, d := range duties.Duties {
		if want := duties.Duties[0].Height - int64(i); d.Height != want || !d.Signed || !d.Proposed || d.Power != 100 ||
			len(d.Block) != 64 {
			t.Errorf("%+v, wanted height %d", d, want)
		}
		// it was asked for some blocks later
		if row, shown := rows[fmt.Sprint(d.Height)]; shown && !has(row, d.Height, true, true, 100, d.Block) {
			t.Errorf("%v, of %+v", row, d)
		}
	}
	var earned inspect.ValidatorEarnings
	rows = shows(t, &earned, "validator", "earnings", "--home", home)
	if !strings.HasPrefix(earned.Operator, "starlingvaloper1") || earned.Rewards == 0 || earned.Commission == 0 ||
		earned.Commission > earned.Rewards ||
		!has(rows["operator"], earned.Operator) || !has(rows["rewards"], terminal.Zen(earned.Rewards)+" ZEN, not withdrawn") {
		t.Errorf("%+v\n%v", earned, rows)
	}
	var peers struct{ Peers []validators.Peer }
	if shows(t, &peers, "network", "peers", "--network", network); peers.Peers == nil || len(peers.Peers) > 0 {
		t.Errorf("peers of the only validator: %+v", peers)
	}
	var health api.Health
	rows = shows(t, &health, "network", "health", "--network", network)
	var names []string
	for _, x := range health.Checks {
		names = append(names, x.Name)
	}
	if health.Status != "ok" || strings.Join(names,
		", ") != "network, peers, votes, clock, participants, orders, books" ||
		!has(rows["votes"], "ok", "100 of 100 of the power") ||
		!has(rows["participants"], "ok", 5, "offer work") || !has(rows["books"], "ok", 14, "modules") {
		t.Errorf("%+v\n%v", health, rows)
	}
	if code, text, stderr := starling(t, "validator", "logs", "--home", home); code != 0 || text != "" {
		t.Errorf("the log of a validator with which nothing is wrong: exit %d\n%s%s", code, text, stderr)
	}
}

// afterFees reports whether a balance is what it would be without fees of transactions, less a few of these.
func afterFees(balance, without uint64) bool {
	return balance <= without && balance+1_000_000 > without
}

// hoursOfWorker compares the hours of a worker, and the table for its books, with its receipts.
func hoursOfWorker(t *testing.T, home string) {
	t.Helper()
	var earned struct {
		Received uint64 `json:"received_uzen"`
	}
	does(t, &earned, "worker", "earnings", "--home", home)
	var kept struct {
		Hours []struct {
			Reason   standing.Cause
			Text     string
			Received uint64 `json:"received_uzen"`
			Seconds  map[standing.Cause]float64
		}
	}
	does(t, &kept, "worker", "hours", "--home", home)
	var received uint64
	for _, h := range kept.Hours {
		received += h.Received
		if !slices.Contains(standing.Causes, h.Reason) || h.Text == "" {
			t.Errorf("%+v", h)
		}
	}
	if len(kept.Hours) == 0 || received != earned.Received || earned.Received == 0 {
		t.Errorf("%+v: %d uzen, and the receipts say %d", kept, received, earned.Received)
	}
	code, text, stderr := starling(t, "worker", "earnings", "--home", home, "--csv", "-")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if code != 0 || err != nil || len(rows) < 2 || strings.Join(rows[0], " ") !=
		"time amount coin job kind height transaction reason" {
		t.Fatalf("exit %d, %v: %s%s", code, err, text, stderr)
	}
	var booked float64
	for _, row := range rows[1:] {
		zen, err := strconv.ParseFloat(row[1], 64)
		at, err2 := time.Parse(time.RFC3339, row[0])
		if err != nil || err2 != nil || time.Since(at).Abs() > time.Hour || row[2] != "ZEN" || row[5] == "" {
			t.Errorf("%q: %v, %v", row, err, err2)
		}
		booked += zen
	}
	if uint64(math.Round(booked*1e6)) != earned.Received {
		t.Errorf("%f ZEN are booked, and the receipts say %d uzen", booked, earned.Received)
	}
	rates := filepath.Join(t.TempDir(), "rates.csv")
	if err := os.WriteFile(rates, []byte("day,coin,rate\n,zen,0.5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var worth struct {
		Value struct{ Unit, Received, Lost string }
	}
	does(t, &worth, "worker", "earnings", "--home", home, "--in", "EUR", "--rates", rates)
	value, err := strconv.ParseFloat(worth.Value.Received, 64)
	if err != nil || worth.Value.Unit != "EUR" || math.Abs(value-booked/2) > 1e-6*float64(len(rows)) {
		t.Errorf("%f ZEN at 0.5 EUR: %+v", booked, worth)
	}
	if code, _, stderr := starling(t, "worker", "earnings", "--home", home, "--in", "EUR", "--rates", home); code == 0 {
		t.Errorf("a folder of rates: %s", stderr)
	}
}

// viewsOfJob looks at a job that is over, and at what those see of themselves who trained it.
func viewsOfJob(t *testing.T, dir, network string, s rundir.Summary, by map[string][]string) {
	t.Helper()
	paid := uint64(0)
	for _, name := range []string{"worker-0", "worker-1", "worker-2", "verifier-0", "verifier-1"} {
		paid += paidTo(t, filepath.Join(dir, name))
	}
	if paid != s.PaidUzen {
		t.Errorf("they received %d uzen, and the job paid %d", paid, s.PaidUzen)
	}
	consumer, worker := filepath.Join(dir, "consumer"), filepath.Join(dir, "worker-0")
	var account session.Account
	rows := shows(t, &account, "account", "show", "--home", consumer, "--network", network)
	if account.Address != by[""][0] || !afterFees(account.Balance, funds-s.PaidUzen-s.FeeUzen) || account.Stake != 0 ||
		!has(rows["coins"], terminal.Zen(account.Balance), "ZEN") {
		t.Errorf("%+v\n%v", account, rows)
	}
	var tasks struct {
		Tasks []instrument.ActionStatus
		Runs  []string
	}
	if rows := shows(t, &tasks, "worker", "tasks", "--home", worker); len(tasks.Tasks) > 0 || len(tasks.Runs) > 0 ||
		!has(rows["0"], "0 tasks in 0 runs") {
		t.Errorf("%+v\n%v", tasks, rows)
	}
	var r workerReport
	rows = shows(t, &r, "worker", "status", "--home", worker)
	if !r.Running || r.Process.Role != "worker" || !slices.Contains(by["worker"], r.Process.Address) ||
		r.Process.Received == 0 || len(r.Process.Peers) == 0 ||
		!has(rows["account"], r.Process.Address) ||
		!has(rows["process"], fmt.Sprintf("%d,", r.Process.PID), "running as worker") ||
		!has(rows["identity"], r.Process.PeerID) {
		t.Errorf("%+v\n%v", r, rows)
	}
	hoursOfWorker(t, worker)
	attestationOfWorker(t, worker, network)
	var log struct{ Lines []string }
	does(t, &log, "worker", "logs", "--home", worker)
	code, text, stderr := starling(t, "worker", "logs", "--home", worker, "-o", "jsonl")
	var line struct{ Line string }
	first, _, _ := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(first), &line); err != nil || code != 0 ||
		!strings.Contains(line.Line, "job opened") || strings.Count(line.Line, s.Job) != 1 || log.Lines[0] != line.Line {
		t.Errorf("exit %d, %v: %s%s", code, err, first, stderr)
	}
	var list struct{ Jobs []api.Job }
	rows = shows(t, &list, "job", "list", "--network", network)
	if len(list.Jobs) != 1 || list.Jobs[0].ID != s.Job || list.Jobs[0].Audits != api.AuditCounts(s.Audits) ||
		s.Audits.Passed == 0 || !has(rows[s.Job], s.Job, "done", "4/4", "-", "-", 3, terminal.Zen(s.PaidUzen), "-",
		"network", "-", "-", terminal.Zen(s.BudgetUzen), list.Jobs[0].Disputes, s.Job, s.StateRoot) {
		t.Errorf("%+v\n%v", list, rows)
	}
	var j api.Job
	rows = shows(t, &j, "job", "get", s.Job, "--network", network)
	if j.StateRoot != s.StateRoot.String() || j.RefundedUzen != s.RefundedUzen || j.Audits.Drawn != s.Audits.Drawn ||
		j.Audits.Passed != s.Audits.Passed || !has(rows["state"], "state root", s.StateRoot) ||
		!has(rows["refunded"], terminal.Zen(s.RefundedUzen)) {
		t.Errorf("%+v\n%v", j, rows)
	}
	var members api.Members
	rows, units := shows(t, &members, "job", "workers", s.Job, "--network", network), 0
	for _, m := range members.Members {
		units += m.Units
		if m.Role != "consumer" && !slices.Contains(by[m.Role], m.ID) ||
			!has(rows[m.ID], m.Role, m.Units, m.Audits.Drawn, fmt.Sprintf("%d/4", m.Signed), terminal.Zen(m.Uzen)) {
			t.Errorf("%+v\n%v", m, rows[m.ID])
		}
	}
	if units != s.Rounds*s.Workers || members.Rounds != 4 {
		t.Errorf("%d units: %+v", units, members)
	}
}
