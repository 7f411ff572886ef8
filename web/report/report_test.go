package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/starling-network/starling/client/api"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file under testdata")

// example is a run of twelve rounds in which one of four workers lied in round 3.
func example() Report {
	const liar = "starling1z9qf4k7w3z8j5m2v6x0p"
	address := func(i int) string { return fmt.Sprintf("starling1%dy9qf4k7w3z8j5m2v6x%d", i, i) }
	r := Report{
		Job: Job{Name: "quickstart", ID: strings.Repeat("3fa9", 16), Facts: []Fact{{"Model", "gpt2, 0.83 M parameters"},
			{"Data", "2 datasets, 214 files, 1.9 MB"}, {"Strategy", "diloco, 20 inner steps a round, int8"}}},
		Summary: Summary{Status: "finished", Rounds: 12, Workers: 4, Steps: 240, Tokens: 491520, FirstEvalLoss: 5.561,
			FinalEvalLoss: 2.207, BitsPerByte: 1.592,
			Seconds: 131.4, BytesUp: 39_900_000, BytesDown: 119_700_000,
			Audits:      api.AuditCounts{Drawn: 8, Passed: 5, Failed: 1, Moot: 2},
			PlantsShown: 3, PlantsCaught: 2,
			BudgetUzen: 25_000_000, PaidUzen: 18_241_003, FeeUzen: 960_052, RefundedUzen: 5_798_945, SlashedUzen: 2_000_000,
			StateRoot: strings.Repeat("c07d", 16)},
	}
	for s := 1; s <= 240; s++ {
		wave := float64(s*7919%101)/101 - 0.5
		r.Train = append(r.Train, Point{s, 2.15 + 3.4*math.Exp2(-float64(s)/45) + 0.12*wave})
	}
	r.Eval = append(r.Eval, Point{0, 5.561})
	for round := 1; round <= 12; round++ {
		r.Eval = append(r.Eval, Point{20 * round, 2.2 + 3.36*math.Exp2(-float64(20*round)/42)})
		members := 4
		if round >= 3 {
			members = 3
		}
		r.Rounds = append(r.Rounds, Round{
			Round: round, Workers: members, BytesUp: uint64(members) * 831_000, BytesDown: uint64(members) * 2_493_000,
			Seconds: 10.9,
			Loss:    r.Train[20*round-10].Value, EvalLoss: r.Eval[round].Value,
		})
		c := Checkpoint{Round: round, StateRoot: fmt.Sprintf("%064x", round*0x9e3779b97f4a),
			Signers: []string{address(1), address(2), address(3)}, Members: 4}
		if round == 3 {
			c.Excluded = []string{liar}
		}
		r.Lineage = append(r.Lineage, c)
	}
	for w := 1; w <= 3; w++ {
		e := Earning{Participant: address(w), Role: "worker"}
		for round := 1; round <= 12; round++ {
			e.Receipts = append(e.Receipts, Receipt{Round: round, For: fmt.Sprintf("work unit %d", w),
				Uzen: 480_000 + uint64(w*1000), Reason: "verified work"})
		}
		r.Earnings = append(r.Earnings, e)
	}
	r.Earnings[2].Receipts[11] = Receipt{Round: 12, For: "work unit 3", Reason: "the update came after the deadline",
		Fix: "use a machine with a faster link, or ask for less work"}
	r.Earnings = append(r.Earnings, Earning{Participant: liar, Role: "worker", Slashed: "2.00 ZEN", Receipts: []Receipt{
		{Round: 3, For: "work unit 4", Reason: "fraud proven in round 3"},
		{Round: 1, For: "work unit 4", Reason: "fraud proven in round 3"}}},
		Earning{Participant: "starling1verifier", Role: "verifier",
			Receipts: []Receipt{{Round: 3, For: "audit of work unit 4", Uzen: 1_000_003, Reason: "found the fault"}}},
		Earning{Participant: "starling1idle", Role: "verifier"})
	for _, round := range []int{1, 2, 3, 5, 8, 11} {
		a := Audit{Round: round, Worker: address(1 + round%3), Verifier: "starling1verifier", Sample: "steps 0 to 19",
			Outcome: "same bits"}
		if round == 3 {
			a.Worker, a.Outcome, a.Note = liar, "a fault found", "dispute opened"
		}
		r.Audits = append(r.Audits, a)
	}
	r.Disputes = []Dispute{{Round: 3, Worker: liar, Challenger: "starling1verifier",
		Leaf:    "step 41, operator 212 (Dot), tile 3: referee has 7c1e…, worker claimed 0000…",
		Verdict: "worker at fault", Guilty: true, Slashed: "2.00 ZEN",
		Moves: []Move{{"starling1verifier", "challenges steps 40 to 59"},
			{liar, "opens 16 state roots"}, {"starling1verifier", "disagrees from step 41 on"}}}}
	r.Summary.Utilisation, r.Summary.BrokeRules, r.Summary.HadToLeave = 0.914, 2, 1
	r.Members = []Member{
		{Name: "worker-0", BytesUp: 13_300_000, BytesDown: 39_900_000, Worked: 119.8, PaidUzen: 5_772_000},
		{Name: "worker-3", Act: "skips", BytesUp: 1_662_000, BytesDown: 4_986_000, Worked: 12, SlashedUzen: 2_000_000,
			Out: "fraud proven in round 3", OutSeconds: 41.2},
		{Name: "worker-4", Act: "copies"},
	}
	return r
}

// compared is four of the example, one of which nothing is known of.
func compared() Comparison {
	c := Comparison{Name: "quickstart", Keys: []string{"strategy.sync_steps", "seed"}}
	for i := range 4 {
		v := Variant{Name: fmt.Sprintf("%03d", i), Settings: []string{fmt.Sprint(5 << i), "1"}, Report: example()}
		for k := range v.Rounds {
			v.Rounds[k].BytesUp >>= i
			v.Rounds[k].EvalLoss += 0.2 * float64(i)
		}
		v.Summary.FinalEvalLoss += 0.2 * float64(i)
		c.Variants = append(c.Variants, v)
	}
	c.Variants[3].Report = Report{Summary: Summary{Status: "halted", FinalEvalLoss: math.NaN()}}
	return c
}

func render(t *testing.T, r Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func renderComparison(t *testing.T, c Comparison) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func pictureOf(t *testing.T, name string, pictures func() ([]Picture, error)) string {
	t.Helper()
	all, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Name == name {
			return string(p.SVG)
		}
	}
	t.Fatalf("no picture of the name %s", name)
	return ""
}

func TestGolden(t *testing.T) {
	for file, written := range map[string]func() string{
		"example.html":      func() string { return render(t, example()) },
		"comparison.html":   func() string { return renderComparison(t, compared()) },
		"loss-by-time.svg":  func() string { return pictureOf(t, "loss-by-time", compared().Pictures) },
		"loss-by-bytes.svg": func() string { return pictureOf(t, "loss-by-bytes", example().Pictures) },
	} {
		got := written()
		if written() != got {
			t.Fatalf("%s: the same values gave two files", file)
		}
		golden := "testdata/" + file
		if *rewrite {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// Pictures are XML by itself: a reader that knows nothing of HTML takes them, whatever the texts are.
func TestPictures(t *testing.T) {
	c := compared()
	for i := range c.Variants {
		c.Variants[i].Settings[0] = `<b a='1'>&"+` + "\u00e9" + strings.Repeat(" long", 9*i)
	}
	for name, pictures := range map[string]func() ([]Picture, error){"a run": example().Pictures,
		"a comparison": c.Pictures} {
		all, err := pictures()
		if err != nil || len(all) < 3 {
			t.Fatalf("%s: %d pictures, %v", name, len(all), err)
		}
		for _, p := range all {
			texts, d := 0, xml.NewDecoder(bytes.NewReader(p.SVG))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %s: %v", name, p.Name, err)
				}
				if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
					texts++
				}
			}
			if texts < 5 || bytes.Contains(p.SVG, []byte("ZgotmplZ")) {
				t.Errorf("%s: %s has %d texts", name, p.Name, texts)
			}
			selfContained(t, string(p.SVG))
		}
	}
}

// Of a great many variants the best are drawn, each with a class of its own; all are in the table.
func TestComparisonOfMany(t *testing.T) {
	c := Comparison{Name: "many", Keys: []string{"seed"}}
	for i := range 30 {
		v := Variant{Name: fmt.Sprint(i), Settings: []string{fmt.Sprint("setting ", i)}, Report: example()}
		v.Summary.FinalEvalLoss = float64(i * 7 % 30)
		c.Variants = append(c.Variants, v)
	}
	drawn := c.drawn()
	if len(drawn) != len(palette) || !slices.IsSorted(drawn) {
		t.Fatalf("%v are drawn", drawn)
	}
	for _, i := range drawn {
		if c.Variants[i].Summary.FinalEvalLoss >= float64(len(palette)) {
			t.Errorf("%d is drawn, with a loss of %v", i, c.Variants[i].Summary.FinalEvalLoss)
		}
	}
	for _, chart := range c.charts() {
		if len(chart.Lines) != len(palette) || len(chart.Legend) != len(palette) {
			t.Errorf("%s: %d lines", chart.Name, len(chart.Lines))
		}
	}
	page := renderComparison(t, c)
	if n := strings.Count(page, "<td>setting "); n != 30 {
		t.Errorf("%d of 30 in the table", n)
	}
	selfContained(t, page)
	if page := renderComparison(t, Comparison{Name: "none"}); strings.Contains(page, "<path") ||
		strings.Contains(page, "NaN") {
		t.Error("a chart of nothing")
	}
}

// TestHostileText puts markup into every text of a report: none of it may become markup.
func TestHostileText(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror='a'>{{.}}</style></title>`
	r := Report{
		Job:      Job{Name: evil, ID: evil, Facts: []Fact{{evil, evil}}},
		Summary:  Summary{Status: evil, StateRoot: evil, FirstEvalLoss: math.NaN(), FinalEvalLoss: math.Inf(1)},
		Train:    []Point{{1, math.NaN()}, {2, math.Inf(-1)}, {3, 1e300}},
		Earnings: []Earning{{Participant: evil, Role: evil, Receipts: []Receipt{{For: evil, Reason: evil, Fix: evil}}}},
		Audits:   []Audit{{Worker: evil, Verifier: evil, Sample: evil, Note: evil}},
		Disputes: []Dispute{{Worker: evil, Challenger: evil, Leaf: evil, Verdict: evil, Moves: []Move{{evil, evil}}}},
		Lineage:  []Checkpoint{{StateRoot: evil, Signers: []string{evil}, Excluded: []string{evil}}},
		Members:  []Member{{Name: evil, Act: evil, Out: evil}},
	}
	selfContained(t, render(t, r))
	c := compared()
	c.Name, c.Keys[0], c.Variants[0].Name, c.Variants[1].Settings[0], c.Variants[2].Report = evil, evil, evil, evil, r
	selfContained(t, renderComparison(t, c))
}

func TestSelfContained(t *testing.T) { selfContained(t, render(t, example())) }

// selfContained parses the page and looks for what would run, or leave the file.
func selfContained(t *testing.T, page string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(page))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		token := z.Token()
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		switch token.Data {
		case "script", "img", "link", "iframe", "object", "embed", "image", "use", "a", "base", "form":
			t.Errorf("the page has a <%s>", token.Data)
		}
		for _, a := range token.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" || a.Key == "style" {
				t.Errorf("<%s> has %s=%q", token.Data, a.Key, a.Val)
			}
		}
	}
	if strings.Contains(page, "@import") || strings.Contains(page, "url(") || strings.Contains(page, "ZgotmplZ") {
		t.Error("the page loads something, or the template refused a value")
	}
}

// The report of a modelled job has no losses.
func TestModelledReport(t *testing.T) {
	r := example()
	r.Train, r.Eval, r.Lineage, r.Summary.Modelled, r.Summary.StateRoot = nil, nil, nil, true, ""
	for i := range r.Rounds {
		r.Rounds[i].Loss, r.Rounds[i].EvalLoss = math.NaN(), math.NaN()
	}
	r.Summary.FirstEvalLoss, r.Summary.FinalEvalLoss = math.NaN(), math.NaN()
	page := render(t, r)
	for text, want := range map[string]bool{"modelled: bytes": true, "Bytes by round": true, "Utilisation": true,
		"Eval loss": false, "Lineage": false, "Loss by time": false, "not measured": false, "NaN": false} {
		if strings.Contains(page, text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func TestEmptyReport(t *testing.T) {
	page := render(t, Report{Job: Job{Name: "empty"}})
	for _, want := range []string{"Nobody has a receipt yet", "No checkpoint was attested", "None was drawn"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(page, "<path") || strings.Contains(page, "NaN") {
		t.Error("a chart of nothing")
	}
}

// TestChartsStayInside draws awkward series and checks every coordinate.
func TestChartsStayInside(t *testing.T) {
	long := make([]Point, 10_000)
	rounds := make([]Round, 1000)
	for i := range long {
		long[i] = Point{i, float64(i%17) * 1e-5}
	}
	for i := range rounds {
		rounds[i] = Round{Round: i + 1, BytesUp: math.MaxUint64 / 4000, BytesDown: uint64(i)}
	}
	long[7].Value = 0.5
	slow := Report{Rounds: []Round{{Seconds: 1e7, Loss: 3, EvalLoss: 2, BytesUp: math.MaxUint64 / 4},
		{Seconds: 3, Loss: 2, EvalLoss: math.NaN()}}}
	for name, c := range map[string]*Chart{
		"months":         slow.lossByTime(),
		"many bytes":     slow.lossByBytes(),
		"minutes":        example().lossByTime(),
		"one point":      lossChart([]Point{{5, 3}}, nil, ""),
		"constant":       lossChart([]Point{{1, 0}, {2, 0}}, []Point{{2, 0}}, ""),
		"negative":       lossChart([]Point{{1, -5}, {9, -1e-9}}, nil, ""),
		"huge":           lossChart([]Point{{1, 9e11}, {1 << 40, -9e11}}, nil, ""),
		"long":           lossChart(long, long[:200], ""),
		"no bytes":       bytesChart([]Round{{Round: 1}}),
		"a great many":   bytesChart(rounds),
		"rounds of zero": bytesChart(make([]Round, 3)),
	} {
		if len(c.YTicks) < 2 || len(c.YTicks) > 12 || len(c.XTicks) < 1 || len(c.XTicks) > 16 {
			t.Errorf("%s: %d and %d ticks", name, len(c.XTicks), len(c.YTicks))
		}
		for _, l := range c.Lines {
			if n := strings.Count(l.Path, "L"); n > maxPoints {
				t.Errorf("%s: %d points", name, n)
			}
			for _, part := range strings.Split(strings.NewReplacer("M", "", " L", ";").Replace(l.Path), ";") {
				var x, y float64
				if _, err := fmt.Sscanf(part, "%g %g", &x, &y); err != nil || x < c.Left || x > c.Right || y < c.Top ||
					y > c.Bottom {
					t.Fatalf("%s: point %q is outside", name, part)
				}
			}
		}
		for _, b := range c.Bars {
			if b.X < c.Left || b.X+b.Width > c.Right+0.2 || b.Y < c.Top-0.1 || b.Y+b.Height > c.Bottom+0.1 || b.Height < 0 {
				t.Fatalf("%s: bar %+v is outside", name, b)
			}
		}
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		zen(0): "0.00", zen(1): "0.000001", zen(25_000_000): "25.00", zen(18_241_003): "18.241003", zen(400_000): "0.40",
		bytesText(0): "0 B", bytesText(999): "999 B", bytesText(1500): "1.5 kB", bytesText(39_900_000): "39.9 MB",
		bytesText(999_999): "1 MB",
		count(1234567):     "1\u202f234\u202f567", count(12): "12", seconds(131.4): "2 min 11 s", seconds(7322): "2 h 02 min",
		seconds(3):                          "3 s",
		short("starling1abcdefghijklmnopq"): "starling1abcd…lmnopq", short("w1"): "w1",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
