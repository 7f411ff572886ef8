package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/foreign"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/doctor"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/recommend"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/node/validator"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/protocol/market"
)

// What commands answer to programs. Each function says whether an answer is a list, and what of it a script passes on
// to the next command: -o jsonl and -o name print that.

// figures marks, as its Annotations, a command whose answer has no name: numbers or text that no other command takes.
var figures = map[string]string{answerKind: "figures"}

const answerKind = "answer"

func figuresAnswer(whole any) terminal.Answer { return terminal.One(whole, "") }

// A run, its plan and its model go by what the next command about them takes.

func planAnswer(p *plan.Plan) terminal.Answer { return terminal.One(p, p.ID) }

func trainAnswer(s *rundir.Summary, dir string) terminal.Answer { return terminal.One(s, dir) }

func verifyAnswer(v *verify.Result, dir string) terminal.Answer { return terminal.One(v, dir) }

func modelAnswer(s shown, dir string) terminal.Answer { return terminal.One(s, dir) }

func cardAnswer(path string, verified bool) terminal.Answer {
	return terminal.One(map[string]any{"path": path, "verified": verified}, path)
}

func serveAnswer(base string, models []string) terminal.Answer {
	return terminal.One(map[string]any{"base_url": base, "models": models}, base)
}

func exportAnswer(format, file string, metrics int) terminal.Answer {
	return terminal.One(map[string]any{"format": format, "file": file, "metrics": metrics}, file)
}

// explainAnswer is about receipts of one job, which starling job explain takes by their numbers.
func explainAnswer(found []rundir.Explanation) terminal.Answer {
	return terminal.Items("receipts", found, func(e rundir.Explanation) string { return strconv.FormatUint(e.Seq, 10) })
}

// earningsAnswer is about receipts of many jobs: a name is a job and a number.
func earningsAnswer(account string, received, lost uint64, found []rundir.Explanation) terminal.Answer {
	if found == nil {
		found = []rundir.Explanation{}
	}
	whole := map[string]any{"account": account, "received_uzen": received, "lost_uzen": lost, "receipts": found}
	return terminal.List(whole, found, func(e rundir.Explanation) string { return fmt.Sprintf("%s %d", e.Job, e.Seq) })
}

// simAnswer goes by its folder, or without one by the state root in which it ended.
func simAnswer(done []variant, dirs []string, swept bool) terminal.Answer {
	if !swept {
		return terminal.One(done[0].Simulation, simName(done[0], dirs, 0))
	}
	at := -1
	return terminal.Items("simulations", done, func(v variant) string { at++; return simName(v, dirs, at) })
}

func simName(v variant, dirs []string, i int) string {
	if i < len(dirs) {
		return dirs[i]
	}
	return v.StateRoot.String()
}

// adviceAnswer is about candidates, which xargs starling train takes as settings.
func adviceAnswer(a *recommend.Ranking) terminal.Answer {
	return terminal.List(a, a.Candidates,
		func(c recommend.Candidate) string { return "--set '" + strings.Join(c.Set, "' --set '") + "'" })
}

// logAnswer is about lines of a log, which nothing takes; whole is the object that has them.
func logAnswer(whole any, lines []string) terminal.Answer {
	items := make([]map[string]string, len(lines))
	for i, line := range lines {
		items[i] = map[string]string{"line": line}
	}
	return terminal.Lines(whole, items)
}

// Job files.

func initAnswer(file, schema string) terminal.Answer {
	return terminal.One(map[string]string{"file": file, "schema": schema}, file)
}

// importAnswer goes by its file, and has no name if it was not written to one.
func importAnswer(made *foreign.Job, file string) terminal.Answer {
	return terminal.One(map[string]any{"from": made.From, "file": string(made.File), "left": made.Left}, file)
}

func templatesAnswer(list []templateLine) terminal.Answer {
	return terminal.Items("templates", list, func(t templateLine) string { return t.Name })
}

// documentAnswer is a document that is JSON already, such as a schema or a genesis.
func documentAnswer(text []byte, name string) terminal.Answer {
	return terminal.One(json.RawMessage(text), name)
}

// printDocument writes a document as it is, unless another form is asked for.
func (c *cli) printDocument(text []byte, name string) error {
	if c.form.Machine() {
		return c.form.Print(os.Stdout, documentAnswer(text, name))
	}
	_, err := os.Stdout.Write(text)
	return err
}

// Accounts and what they do on a network.

func identityAnswer(id identity) terminal.Answer { return terminal.One(id, id.Address) }

func accountAnswer(a *session.Account) terminal.Answer { return terminal.One(a, a.Address) }

func historyAnswer(address string, list []movement) terminal.Answer {
	return terminal.List(map[string]any{"address": address, "transactions": list}, list,
		func(m movement) string { return m.Hash })
}

func sentAnswer(from, to, memo string, amount uint64, r client.Result) terminal.Answer {
	return terminal.One(map[string]any{
		"from": from, "to": to, "amount_uzen": amount, "fee_uzen": feeUzen(r), "memo": memo, "height": r.Height,
		"hash": r.Hash,
	}, r.Hash)
}

func proposalAnswer(p proposal) terminal.Answer { return terminal.One(p, strconv.FormatUint(p.ID, 10)) }

func proposalsAnswer(list []proposal) terminal.Answer {
	return terminal.Items("proposals", list, func(p proposal) string { return strconv.FormatUint(p.ID, 10) })
}

func proposedAnswer(id uint64, r client.Result) terminal.Answer {
	return terminal.One(map[string]any{"proposal": id, "height": r.Height, "hash": r.Hash}, strconv.FormatUint(id, 10))
}

// sharesAnswer is about the holders of a model, who go by their accounts.
func sharesAnswer(o owned) terminal.Answer {
	return terminal.List(o, o.Holders, func(h holder) string { return h.Account })
}

func stepAnswer(job, verb string) terminal.Answer {
	return terminal.One(map[string]string{"job": job, "done": verb}, job)
}

func operatedAnswer(r client.Result) terminal.Answer {
	return terminal.One(map[string]any{"height": r.Height, "hash": r.Hash}, r.Hash)
}

func workerAnswer(r *workerReport) terminal.Answer { return terminal.One(r, r.address()) }

func drainAnswer(home string, draining bool) terminal.Answer {
	return terminal.One(map[string]bool{"draining": draining, "withdrawn": !draining}, home)
}

func replayAnswer(r *journal.Report, file string) terminal.Answer { return terminal.One(r, file) }

// replayedAnswer is what came of a validator's blocks, by its folder.
func replayedAnswer(r chain.Replayed, home string) terminal.Answer { return terminal.One(r, home) }

// Networks.

func networkAnswer(n *keystore.Network, dir string) terminal.Answer { return terminal.One(n, dir) }

func joinAnswer(j *validator.Joined) terminal.Answer { return terminal.One(j, j.Home) }

func statusAnswer(s *inspect.NetworkStatus) terminal.Answer { return terminal.One(s, s.ChainID) }

func validatorAnswer(s *inspect.ValidatorStatus) terminal.Answer { return terminal.One(s, s.Home) }

func booksAnswer(b *inspect.Books) terminal.Answer {
	return terminal.List(b, b.Books, func(book client.Book) string { return book.Module })
}

func quoteAnswer(q *plan.Quote) terminal.Answer { return terminal.One(q, q.Job) }

// offered is an offer as it is matched, for programs.
type offered struct {
	ID           string `json:"id"`
	Role         string `json:"role"`
	Price        uint64 `json:"price"` // uzen per 10^15 floating-point operations
	Slots        uint32 `json:"slots"`
	Since        int64  `json:"since"` // height
	Class        string `json:"class"`
	Tier         string `json:"tier"`
	Memory       uint64 `json:"memory_mib"`
	Upload       uint64 `json:"upload_kbps"`
	Disk         uint64 `json:"disk_mib"`
	Cores        uint32 `json:"cpus"`
	Devices      uint32 `json:"accelerators"`
	Model        string `json:"accelerator_model,omitempty"`
	Passed       uint32 `json:"audits_passed"`
	Region       string `json:"region"`
	Jurisdiction string `json:"jurisdiction"`
	Domain       string `json:"domain"`
	Attested     bool   `json:"attested"`
	Rate         uint64 `json:"rate"`       // operations a second; 0: not measured
	Latency      uint32 `json:"latency_ms"` // 0: not measured
	Cover        uint64 `json:"cover_uzen"` // price of the work that its stake may still stand behind
}

func offersOf(lots []market.Lot) []offered {
	lines := make([]offered, len(lots))
	for i, l := range lots {
		lines[i] = offered{
			ID: l.ID, Role: l.Role.String(), Price: l.Price, Slots: l.Slots, Since: l.At, Class: l.Class.String(),
			Tier: l.Tier.String(), Memory: l.Memory,
			Upload: l.Upload, Disk: l.Disk, Cores: l.Cores, Devices: l.Devices, Model: l.Model, Passed: l.Passed,
			Region: l.Region, Jurisdiction: l.Jurisdiction, Domain: l.Domain, Attested: l.Attested, Rate: l.Rate,
			Latency: l.Latency, Cover: l.Cover,
		}
	}
	return lines
}

// offerAnswer is about what can be matched of an account's offer: that of a pool once for each member.
func offerAnswer(lots []market.Lot) terminal.Answer {
	return terminal.Items("offers", offersOf(lots), func(o offered) string { return o.ID })
}

// ordered is an open order, for programs.
type ordered struct {
	Job       string `json:"job"`
	Consumer  string `json:"consumer"`
	Budget    uint64 `json:"budget_uzen"`
	PriceCap  uint64 `json:"price_cap"`
	Workers   uint32 `json:"workers"` // at least
	Most      uint32 `json:"most_workers"`
	Verifiers uint32 `json:"verifiers"`
	Since     int64  `json:"since"`   // height
	Expires   int64  `json:"expires"` // height; 0: never
	Why       string `json:"why"`
}

func ordersOf(orders []client.Placed) []ordered {
	lines := make([]ordered, len(orders))
	for i, o := range orders {
		lines[i] = ordered{Job: o.ID, Consumer: o.Consumer, Budget: o.Budget, PriceCap: o.PriceCap, Workers: o.Workers.Min,
			Most: o.Workers.Max, Verifiers: o.Verifiers, Since: o.At, Expires: o.Deadline, Why: o.Why}
	}
	return lines
}

// This machine.

func doctorAnswer(r *doctor.Report) terminal.Answer {
	return terminal.List(r, r.Findings, func(f doctor.Finding) string { return f.Check })
}

func versionAnswer(v map[string]any, version string) terminal.Answer { return terminal.One(v, version) }

// line prints one of the objects of a stream, on a line, whatever form for programs is asked for.
func (c *cli) line(object any) error {
	return terminal.JSON.Print(os.Stdout, terminal.One(object, ""))
}
