// Package report writes the page that a run leaves behind: one HTML file with the loss curve, the bytes moved, who
// earned what and why, the audits, the disputes and the lineage.
//
// The page needs nothing but itself: no script, no font, no request. It is a picture of values given to it; it reads
// no file, knows no clock and computes no result, so the same Report is the same page, byte for byte. It is not the
// dashboard, which is live.
package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/coin"
)

// Report is everything the page shows. Lists are shown in the order given. Amounts are in uzen (1 ZEN = 1 000 000),
// or in grains of the coin of the summary.
type Report struct {
	Job      Job
	Summary  Summary
	Train    []Point // training loss by inner step, nats a token
	Eval     []Point // eval loss by inner step, nats a token
	Rounds   []Round
	Earnings []Earning
	Audits   []Audit
	Disputes []Dispute
	Lineage  []Checkpoint
	Members  []Member // of a simulation, where it is known who is who
}

// Job says what was asked for.
type Job struct {
	Name  string
	ID    string // digest of its canonical form
	Facts []Fact // what a reader wants to know of it: model, data, strategy
}

// Fact is a named value.
type Fact struct{ Name, Value string }

// Summary holds the totals of the run; summary.json has the same numbers.
type Summary struct {
	Status                       string // finished, or why it ended before
	Rounds, Workers, Steps       int
	Tokens                       uint64
	FirstEvalLoss, FinalEvalLoss float64 // NaN: not measured
	BitsPerByte                  float64 // the latter, whatever the tokens are; 0: not measured
	// measurements of the last evaluation besides the loss, by their names, such as the accuracy
	FinalMeasured                 map[string]float64
	Seconds                       float64 // wall clock, or virtual; 0: not shown
	Utilisation                   float64 // share of the time of workers in accepted units; 0: not shown
	BytesUp, BytesDown            uint64
	Audits                        api.AuditCounts
	PlantsShown, PlantsCaught     int       // faults that workers planted, to find out whether verifiers look
	PlantsPassed                  int       // by a verifier, who was slashed
	Coin                          coin.Coin // of the budget and what it paid, in grains; zero: ZEN
	BudgetUzen, PaidUzen, FeeUzen uint64    // Budget = Paid + Fee + Refunded
	RefundedUzen, SlashedUzen     uint64
	StateRoot                     string
	BrokeRules, HadToLeave        int  // members that did, and how many of these had to
	Modelled                      bool // nothing was trained: there is no loss and no lineage
}

// Point is one value of a series.
type Point struct {
	Step  int
	Value float64 // a value that is not finite is left out of the chart
}

// Round is the traffic and the results of one round.
type Round struct {
	Round              int
	Workers            int // whose update is in the checkpoint
	BytesUp, BytesDown uint64
	Seconds            float64 // that it took; 0: not known
	Loss, EvalLoss     float64 // nats a token: the mean of its inner steps, and of its checkpoint; NaN: not measured
}

// Member is what a member of the run did and got.
type Member struct {
	Name               string
	Act                string // how it broke the rules; "": it did not
	BytesUp, BytesDown uint64
	Worked             float64 // seconds
	PaidUzen           uint64
	SlashedUzen        uint64
	Out                string  // why it had to leave; "": it did not
	OutSeconds         float64 // since the start
}

// Earning is one participant's account.
type Earning struct {
	Participant string // address or name
	Role        string // worker, verifier, validator
	Slashed     string // of its stakes, with the names of the coins; "": nothing
	Receipts    []Receipt
}

// Receipt is one reason why an account was paid, or was not.
type Receipt struct {
	Round  int
	For    string // what was done: "work unit 2", "audit of work unit 1"
	Uzen   uint64
	Reason string // of the amount, above all of a zero
	Fix    string // what to do about a zero
}

// Audit is one sampled re-execution.
type Audit struct {
	Round            int
	Worker, Verifier string
	Sample           string // what was done again: "steps 3 to 7"
	Outcome          string // same bits, a fault found, moot or not answered
	Note             string
}

// Dispute is the bisection that followed a failed audit.
type Dispute struct {
	Round              int
	Worker, Challenger string
	Moves              []Move
	Leaf               string // what the referee computed
	Verdict            string
	Guilty             bool   // the worker
	Slashed            string // of stakes, with the names of the coins; "": nothing
}

// Move is one step of a bisection.
type Move struct{ By, What string }

// Checkpoint is one attested checkpoint.
type Checkpoint struct {
	Round     int
	StateRoot string
	Signers   []string
	Members   int // how many might have signed
	Excluded  []string
}

var (
	//go:embed page.html
	pageSource string
	//go:embed comparison.html
	comparisonSource string
	//go:embed chart.html
	chartSource string
	//go:embed chart.css
	chartStyle string
	//go:embed style.css
	pageStyle string
)

// pages are the templates, by the names "report", "comparison" and "picture".
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"zen": zen, "money": coins, "bytes": bytesText, "count": count, "loss": loss, "short": short, "about": about,
	"aboutZen": aboutZen, "seconds": seconds, "join": join, "share": percent,
	"style":      func() template.CSS { return template.CSS(chartStyle + pageStyle) },
	"chartStyle": func() template.CSS { return template.CSS(chartStyle) },
}).Parse(pageSource + comparisonSource + chartSource))

// Write writes the page of r.
func Write(w io.Writer, r Report) error {
	return execute(w, "report", struct {
		Report
		Charts   []*Chart
		Money    []share
		Accounts []account
	}{r, r.charts(), money(r.Summary), accounts(r.Earnings)})
}

func execute(w io.Writer, name string, view any) error {
	if err := pages.ExecuteTemplate(w, name, view); err != nil {
		return fmt.Errorf("report: write the %s: %w", name, err)
	}
	return nil
}

// share is one part of the budget.
type share struct {
	Name, Class string
	Uzen        uint64
	X, Width    float64 // percent
}

func money(s Summary) []share {
	parts := []share{{Name: "paid", Class: "a", Uzen: s.PaidUzen}, {Name: "fee", Class: "c", Uzen: s.FeeUzen},
		{Name: "refunded", Class: "d", Uzen: s.RefundedUzen}}
	if s.BudgetUzen == 0 {
		return nil
	}
	x := 0.0
	for i := range parts {
		parts[i].X = x
		parts[i].Width = 100 * float64(parts[i].Uzen) / float64(s.BudgetUzen)
		x += parts[i].Width
	}
	return parts
}

// account is an Earning with the sums of its receipts.
type account struct {
	Earning
	Uzen       uint64
	Paid, Zero int
	Why        string // reasons of its zeros, each once
	Share      float64
}

// refunded is the role of the account that gets the unspent budget back: that is no pay.
const refunded = "consumer"

func accounts(earnings []Earning) []account {
	out := make([]account, len(earnings))
	most := uint64(1)
	for i, e := range earnings {
		a := account{Earning: e}
		var reasons []string
		times := map[string]int{}
		for _, r := range e.Receipts {
			a.Uzen += r.Uzen
			if r.Uzen > 0 {
				a.Paid++
				continue
			}
			a.Zero++
			if times[r.Reason]++; times[r.Reason] == 1 {
				reasons = append(reasons, r.Reason)
			}
		}
		for j, reason := range reasons {
			if n := times[reason]; n > 1 {
				reasons[j] = fmt.Sprintf("%s (%d times)", reason, n)
			}
		}
		a.Why = strings.Join(reasons, "; ")
		if out[i] = a; a.Role != refunded {
			most = max(most, a.Uzen)
		}
	}
	for i := range out {
		if out[i].Role == refunded {
			continue
		}
		out[i].Share = 100 * float64(out[i].Uzen) / float64(most)
	}
	return out
}

// zen is an amount of ZEN without its name.
func zen(uzen uint64) string { return coins(coin.Coin{}, uzen) }

// coins is an amount of a coin without its name.
func coins(c coin.Coin, grains uint64) string { return c.Amount(grains) }

// about is the sum of amounts of a coin, rounded to two decimals, for where space is scarce.
func about(c coin.Coin, grains ...uint64) string {
	sum := 0.0
	for _, n := range grains {
		sum += c.Float(n)
	}
	return strconv.FormatFloat(sum, 'f', 2, 64)
}

func aboutZen(uzen uint64) string { return about(coin.Coin{}, uzen) }

func bytesText(n uint64) string {
	return scaled(float64(n), []string{"B", "kB", "MB", "GB", "TB", "PB"})
}

// scaled writes x with three digits and the unit that suits it; units are a factor of 1000 apart.
func scaled(x float64, units []string) string {
	i := 0
	for ; x >= 999.5 && i < len(units)-1; i++ {
		x /= 1000
	}
	digits := 0
	if i > 0 && x < 9.995 {
		digits = 2
	} else if i > 0 && x < 99.95 {
		digits = 1
	}
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if digits > 0 {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return strings.TrimSpace(s + " " + units[i])
}

// count writes a whole number with thin spaces between thousands.
func count(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func loss(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "not measured"
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

func seconds(s float64) string {
	n := int(math.Round(s))
	switch {
	case n >= 3600:
		return fmt.Sprintf("%d h %02d min", n/3600, n/60%60)
	case n >= 60:
		return fmt.Sprintf("%d min %02d s", n/60, n%60)
	}
	return fmt.Sprintf("%d s", n)
}

// short keeps the two ends of a digest or an address.
func short(s string) string {
	if r := []rune(s); len(r) > 22 {
		return string(r[:13]) + "…" + string(r[len(r)-6:])
	}
	return s
}

func join(list []string) string { return strings.Join(list, ", ") }
