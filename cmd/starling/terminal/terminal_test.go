package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/protocol/coin"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func example() Update {
	return Update{Job: "tiny", Step: 412, MaxSteps: 2000, Round: 9, Rounds: 40, Loss: 3.4121, EvalLoss: 3.5014,
		LearningRate: 2.9e-4,
		GradNorm:     0.812, TokensPerSecond: 18412, Workers: 6, WorkersTarget: 8, Cost: 1_270_000,
		Budget: 25_000_000,
		Left:   time.Hour + 52*time.Minute + 10*time.Second, HasLeft: true}
}

// dai has more decimals than are counted, dime one, yen none.
var (
	dai  = coin.Coin{Denom: "a", Symbol: "dai", Exponent: 18}
	dime = coin.Coin{Denom: "b", Symbol: "dime", Exponent: 1}
	yen  = coin.Coin{Denom: "c", Symbol: "yen"}
)

// The cost of a job in another coin is shown in this coin, with its name.
func TestProgressInACoin(t *testing.T) {
	u := example()
	u.Coin, u.Cost, u.Budget = dai, 1_279_000_001, 25_000_000_000
	if got := fit(u, 400); !strings.Contains(got, "cost 1.27/25.00 DAI") {
		t.Error(got)
	}
	if got := PlainLine(start, u); !strings.Contains(got, "cost=1.279000001 coin=DAI") {
		t.Error(got)
	}
	if got := PlainLine(start, example()); strings.Contains(got, "coin=") {
		t.Error(got)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Zen(1_270_000), "1.27"}, {Zen(0), "0.00"}, {Zen(1), "0.000001"}, {Zen(25_000_000), "25.00"},
		{Zen(18_241_003), "18.241003"},
		{Zen(1_100_000), "1.10"}, {Zen(1_120_300), "1.1203"}, {Zen(math.MaxUint64), "18446744073709.551615"},
		{Short(coin.Coin{}, 1_279_999), "1.27"}, {Short(coin.Coin{}, 9_999), "0.00"},
		{Short(dai, 1_279_999_999), "1.27"}, {Short(yen, 7), "7"}, {Short(dime, 15), "1.5"},
		{Amount(coin.Coin{}, 1_270_000), "1.27"}, {Amount(dai, 1_270_000_000), "1.27 DAI"}, {Optional(dai, 0), ""},
		{Optional(coin.Coin{}, 1), "0.000001 ZEN"},
		{Number(0), "0"}, {Number(812), "812"}, {Number(18412), "18.4k"}, {Number(999.6), "1.00k"},
		{Number(2_310_000), "2.31M"},
		{Number(7.5), "7.50"}, {Number(math.NaN()), "-"}, {Number(999_999), "1.00M"}, {Number(-18412), "-18.4k"},
		{Bytes(0), "0 B"}, {Bytes(999), "999 B"}, {Bytes(39_900_000), "39.9 MB"}, {Bytes(math.MaxUint64), "18447 PB"},
		{Loss(3.41249), "3.412"}, {Loss(math.Inf(1)), "-"}, {Rate(2.9e-4), "2.9e-4"}, {Rate(0), "0"}, {Rate(1), "1.0e0"},
		{Rate(9.99e-4), "1.0e-3"},
		{Clock(6730 * time.Second), "01:52:10"}, {Clock(-time.Second), "00:00:00"},
		{Clock(3*24*time.Hour + time.Second), "3d 00:00:01"},
		{Clock(59*time.Minute + 59*time.Second + 600*time.Millisecond), "01:00:00"},
		{Span(400 * time.Millisecond), "0.4s"}, {Span(8 * time.Millisecond), "8ms"}, {Span(time.Microsecond), "1ms"},
		{Span(0), "0.0s"}, {Span(9970 * time.Millisecond), "10s"}, {Span(131 * time.Second), "2m 11s"},
		{Span(6730 * time.Second), "1h 52m"}, {Span(76 * time.Hour), "3d 4h"}, {Span(59900 * time.Millisecond), "1m 00s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestLineFits(t *testing.T) {
	const full = "train  412/2000 [##..........] 20.6% loss 3.412 val 3.501 lr 2.9e-4 gnorm 0.81 18.4k tok/s workers " +
		"6/8 cost 1.27/25.00 ETA 01:52:10"
	if got := fit(example(), 200); got != full {
		t.Errorf("\n%s, want\n%s", got, full)
	}
	if got, want := fit(example(), 79),
		"train  412/2000 20.6% loss 3.412 val 3.501 18.4k tok/s ETA 01:52:10"; got != want {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	if got := fit(example(), 30); got != "train  412/2000 loss 3.412" {
		t.Errorf("%q", got)
	}
	u := example()
	u.Phase = "vérification"
	for columns := range 160 {
		if got := fit(u, columns); len([]rune(got)) > columns {
			t.Fatalf("%q is wider than %d", got, columns)
		}
	}
	empty := Update{Loss: math.NaN(), EvalLoss: math.NaN(), LearningRate: math.NaN(), GradNorm: math.NaN(),
		TokensPerSecond: math.NaN(), Phase: "building"}
	if got, want := fit(empty, 80), "train 0/0 [............]  0.0% building"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLineIsRedrawnAndLeft(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Line, func() int { return 40 })
	u := example()
	p.Show(start, u)
	p.Show(start.Add(time.Millisecond), u) // too soon
	u.Step = 413
	p.Say(start.Add(time.Second), "worker 3 was slashed\x1b[2J")
	p.Show(start.Add(time.Second), u)
	p.Done()
	p.Done()
	const line = "train  413/2000 loss 3.412 val 3.501"
	want := "\r\x1b[Ktrain  412/2000 loss 3.412 val 3.501" + "\r\x1b[Kworker 3 was slashed [2J\n" + "\r\x1b[K" + line +
		"\r\x1b[K" + line + "\n"
	if b.String() != want {
		t.Errorf("%q, want\n%q", b.String(), want)
	}
}

func TestPlainLines(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Plain, nil)
	u := example()
	for step := 0; step <= 2000; step++ { // two steps a second: a line every ten seconds or hundredth step
		u.Step = step
		p.Show(start.Add(time.Duration(step)*time.Second/2), u)
	}
	p.Show(start.Add(time.Hour), u) // the step stands still
	u.Phase = "auditing round 40"
	p.Show(start.Add(time.Hour), u)
	p.Done()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if n := len(lines); n < 90 || n > 130 {
		t.Errorf("%d lines", n)
	}
	const first = "2030-01-02T03:04:05Z job=tiny step=0 max_steps=2000 round=9 loss=3.412 eval_loss=3.501 tok_s=18412 " +
		"workers=6 cost=1.27 eta_s=6730"
	if lines[0] != first {
		t.Errorf("%s, want\n%s", lines[0], first)
	}
	if last := lines[len(lines)-1]; !strings.HasSuffix(last, `phase="auditing round 40"`) {
		t.Error(last)
	}
	if before := lines[len(lines)-2]; !strings.Contains(before, "step=2000 ") || strings.Contains(before, "T04:04") {
		t.Error(before)
	}
	if strings.ContainsAny(b.String(), "\r\x1b") {
		t.Error("control characters in plain lines")
	}
}

func TestQuietIsSilent(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, Quiet, nil)
	p.Show(start, example())
	p.Say(start, "x")
	p.Done()
	if b.Len() != 0 {
		t.Errorf("%q", b.String())
	}
}

func problem(n int) *Problem {
	return &Problem{Code: fmt.Sprintf("CODE_%d", n), Place: fmt.Sprintf("job.yaml:%d:1", n), What: "what", Why: "why",
		Fix: "fix <it>"}
}

func TestPrintError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "error: plain\n"},
		{fmt.Errorf("train: %w", problem(3)), "error: job.yaml:3:1: what\n  why: why\n  fix: fix <it>\n  code: CODE_3\n"},
		{WithExit(errors.Join(problem(1), &Problem{What: "two\x1b[31m\nlines"}), ExitUsage),
			"error: job.yaml:1:1: what\n  why: why\n  fix: fix <it>\n  code: CODE_1\nerror: two [31m lines\n"},
	} {
		var b bytes.Buffer
		if err := PrintError(&b, c.err, false); err != nil || b.String() != c.want {
			t.Errorf("%q, want %q", b.String(), c.want)
		}
	}
	var b bytes.Buffer
	var many []error
	for i := range 25 {
		many = append(many, problem(i))
	}
	if err := PrintError(&b, errors.Join(many...), false); err != nil ||
		!strings.HasSuffix(b.String(), "error: and 5 more\n") {
		t.Errorf("%q", b.String())
	}
}

func TestJobErrorsExplainThemselves(t *testing.T) {
	_, err := job.Parse([]byte("apiVersion: starling/v1\nkind: TrainingJobs\n"), "job.yaml", "model.architecture=gpt2")
	for _, p := range Problems(WithExit(err, ExitUsage)) {
		if p.Code == "" || p.Code == codeUnknown || p.Place == "" || p.What == "" || p.Fix == "" {
			t.Errorf("%+v", p)
		}
	}
}

func TestPrintErrorJSON(t *testing.T) {
	var b bytes.Buffer
	if err := PrintError(&b, errors.Join(problem(1), problem(2)), true); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "\n") != 1 || !strings.Contains(b.String(), "fix <it>") {
		t.Errorf("not one readable line: %q", b.String())
	}
	var out map[string]map[string]any
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for k := range out["error"] {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if want := []string{"code", "details", "fix", "message", "retryable"}; !slices.Equal(keys, want) {
		t.Errorf("keys %v", keys)
	}
	details := out["error"]["details"].(map[string]any)
	if out["error"]["code"] != "CODE_1" || details["place"] != "job.yaml:1:1" || len(details["problems"].([]any)) != 2 {
		t.Errorf("%v", out)
	}
}

// A program learns whether the same command may succeed later, and nothing when that is not known.
func TestRetryable(t *testing.T) {
	busy := &Problem{Code: "BUSY", Retry: true}
	for name, c := range map[string]struct {
		err  error
		want any
	}{
		"usage": {WithExit(problem(1), ExitUsage), false}, "unreachable": {WithExit(problem(1), ExitUnreachable), true},
		"timed out":    {fmt.Errorf("x: %w", WithExit(problem(1), ExitTimeout)), true},
		"no placement": {WithExit(problem(1), ExitNoCapacity), true},
		"busy":         {WithExit(busy, ExitConflict), true}, "unknown": {errors.New("x"), nil},
	} {
		var b bytes.Buffer
		var out map[string]map[string]any
		if err := errors.Join(PrintError(&b, c.err, true), json.Unmarshal(b.Bytes(), &out)); err != nil ||
			out["error"]["retryable"] != c.want {
			t.Errorf("%s: %v %s", name, err, b.String())
		}
	}
}

func TestExitCodes(t *testing.T) {
	if ExitCode(nil) != 0 || ExitCode(errors.New("x")) != 1 || WithExit(nil, 3) != nil {
		t.Error("defaults")
	}
	inner := WithExit(problem(1), ExitVerification)
	if ExitCode(fmt.Errorf("verify: %w", inner)) != 10 || ExitCode(WithExit(inner, ExitUsage)) != 2 {
		t.Error("wrapped codes")
	}
	err := Interrupted("starling train job.yaml --resume")
	if !isInterrupted(fmt.Errorf("x: %w", err)) || isInterrupted(inner) || ExitCode(err) != 130 ||
		!strings.Contains(Problems(err)[0].Fix, "--resume") {
		t.Error("interrupted")
	}
	for i, c := range ExitCodes[1:] {
		if c.Code <= ExitCodes[i].Code || c.Text == "" {
			t.Errorf("table row %+v", c)
		}
	}
}

// isInterrupted reports whether an error is, or wraps, one of Interrupted.
func isInterrupted(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == ExitInterrupted
}
