package terminal

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/starling-network/starling/protocol/coin"
)

// Update is the state of a run at one moment. A number that is not known is NaN.
type Update struct {
	Job                    string
	Step, MaxSteps         int
	Round, Rounds          int
	Loss, EvalLoss         float64            // nats a token
	Measured               map[string]float64 // by the latest evaluation, by the names of metrics
	LearningRate, GradNorm float64
	TokensPerSecond        float64
	Workers, WorkersTarget int
	Coin                   coin.Coin // of the next two, in its grains
	Cost, Budget           uint64
	Left                   time.Duration // estimate, with HasLeft
	HasLeft                bool
	Phase                  string // what is going on, in a word or two of single-width letters: "auditing"
}

// Mode is how progress is shown.
type Mode int

const (
	Line  Mode = iota // one line, drawn again and again: standard error is a terminal
	Plain             // a line of key=value now and then: standard error is a file or a pipe
	Quiet             // nothing: -q, or -o json
)

const (
	redraw     = 100 * time.Millisecond // a line is drawn at most this often
	plainEvery = 10 * time.Second       // a plain line is written at least this often during steps
	plainParts = 20                     // and at every such part of the run
)

// Progress shows a run on standard error. It is not safe for concurrent use.
type Progress struct {
	w     io.Writer
	mode  Mode
	width func() int
	shown bool      // a line is on the screen
	last  time.Time // of the last line
	part  int       // of the run that the last plain line was in
	phase string
	final Update
}

// NewProgress returns a Progress that writes to w. width gives the columns of the terminal at the moment; it is only
// asked in mode Line, and may be nil for 80.
func NewProgress(w io.Writer, mode Mode, width func() int) *Progress {
	if width == nil {
		width = func() int { return 80 }
	}
	return &Progress{w: w, mode: mode, width: width, part: -1}
}

// Show shows an update, or leaves it out if the last one is recent. A change of phase and the last step are shown
// always.
func (p *Progress) Show(now time.Time, u Update) {
	due := p.last.IsZero() || u.Phase != p.phase || u.Step >= u.MaxSteps && p.final.Step < u.MaxSteps
	switch p.mode {
	case Quiet:
		return
	case Line:
		if !due && now.Sub(p.last) < redraw {
			return
		}
		p.draw(fit(u, p.width()-1))
	case Plain:
		part := 0
		if u.MaxSteps > 0 {
			part = u.Step * plainParts / u.MaxSteps
		}
		if !due && part == p.part && (now.Sub(p.last) < plainEvery || u.Step == p.final.Step) {
			return
		}
		p.part = part
		fmt.Fprintln(p.w, PlainLine(now, u))
	}
	p.last, p.phase, p.final = now, u.Phase, u
}

// Say writes a message of its own: above the progress line, or as a plain line. Quiet says nothing.
func (p *Progress) Say(now time.Time, text string) {
	switch p.mode {
	case Line:
		p.clear()
		fmt.Fprintln(p.w, Printable(text))
	case Plain:
		fmt.Fprintf(p.w, "%s %s\n", stamp(now), Printable(text))
	}
}

// Done leaves the last line on the screen and moves below it.
func (p *Progress) Done() {
	if p.mode == Line && p.shown {
		p.draw(fit(p.final, p.width()-1))
		fmt.Fprintln(p.w)
		p.shown = false
	}
}

func (p *Progress) draw(line string) {
	fmt.Fprint(p.w, "\r\x1b[K", line)
	p.shown = true
}

func (p *Progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// bar is the width of the progress bar, without its brackets.
const bar = 12

// fit writes an update on one line of at most the given columns. It leaves out the least important parts first.
func fit(u Update, columns int) string {
	done := 0.0
	if u.MaxSteps > 0 {
		done = math.Min(1, math.Max(0, float64(u.Step)/float64(u.MaxSteps)))
	}
	filled := int(done * bar)
	type part struct {
		text string
		rank int // 0 is left out last
	}
	parts := []part{{fmt.Sprintf("train %*d/%d", len(strconv.Itoa(u.MaxSteps)), u.Step, u.MaxSteps), 0},
		{"[" + strings.Repeat("#", filled) + strings.Repeat(".", bar-filled) + "]", 5},
		{fmt.Sprintf("%4.1f%%", 100*done), 3}}
	add := func(known bool, rank int, text string) {
		if known {
			parts = append(parts, part{text, rank})
		}
	}
	add(known(u.Loss), 1, "loss "+Loss(u.Loss))
	add(known(u.EvalLoss), 2, "val "+Loss(u.EvalLoss))
	if reward, ok := u.Measured["reward"]; ok {
		add(known(reward), 2, "reward "+Loss(reward))
	}
	add(known(u.LearningRate), 8, "lr "+Rate(u.LearningRate))
	add(known(u.GradNorm), 9, "gnorm "+strconv.FormatFloat(u.GradNorm, 'f', 2, 64))
	add(known(u.TokensPerSecond), 4, Number(u.TokensPerSecond)+" tok/s")
	add(u.WorkersTarget > 0, 7, fmt.Sprintf("workers %d/%d", u.Workers, u.WorkersTarget))
	add(u.Budget > 0, 6, "cost "+Short(u.Coin, u.Cost)+"/"+Short(u.Coin, u.Budget)+foreign(u.Coin, " "))
	add(u.HasLeft, 2, "ETA "+Clock(u.Left))
	add(u.Phase != "", 3, Printable(u.Phase))
	for {
		texts := make([]string, len(parts))
		worst := 0
		for i, p := range parts {
			texts[i] = p.text
			if p.rank >= parts[worst].rank {
				worst = i
			}
		}
		line := strings.Join(texts, " ")
		if len([]rune(line)) <= columns {
			return line
		}
		if len(parts) == 1 {
			return string([]rune(line)[:max(columns, 0)])
		}
		parts = append(parts[:worst], parts[worst+1:]...)
	}
}

// foreign is the name of a coin other than ZEN, after a separator.
func foreign(c coin.Coin, separator string) string {
	if c.Own() {
		return ""
	}
	return separator + Printable(c.Name())
}

func known(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func stamp(now time.Time) string { return now.UTC().Format(time.RFC3339) }

// PlainLine writes an update as a time and key=value pairs.
func PlainLine(now time.Time, u Update) string {
	var b strings.Builder
	b.WriteString(stamp(now))
	pair := func(known bool, key, value string) {
		if known {
			b.WriteString(" " + key + "=" + quoted(value))
		}
	}
	pair(u.Job != "", "job", u.Job)
	pair(true, "step", strconv.Itoa(u.Step))
	pair(u.MaxSteps > 0, "max_steps", strconv.Itoa(u.MaxSteps))
	pair(u.Rounds > 0, "round", strconv.Itoa(u.Round))
	pair(known(u.Loss), "loss", Loss(u.Loss))
	pair(known(u.EvalLoss), "eval_loss", Loss(u.EvalLoss))
	for _, name := range slices.Sorted(maps.Keys(u.Measured)) {
		pair(known(u.Measured[name]), name, Loss(u.Measured[name]))
	}
	pair(known(u.TokensPerSecond), "tok_s", strconv.FormatFloat(u.TokensPerSecond, 'f', 0, 64))
	pair(u.WorkersTarget > 0, "workers", strconv.Itoa(u.Workers))
	pair(u.Budget > 0, "cost", u.Coin.Amount(u.Cost))
	pair(!u.Coin.Own(), "coin", foreign(u.Coin, ""))
	pair(u.HasLeft, "eta_s", strconv.FormatInt(int64(u.Left/time.Second), 10))
	pair(u.Phase != "", "phase", u.Phase)
	return b.String()
}

// quoted puts a value in quotes if it would not read back as one word.
func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " =\"") || !utf8.ValidString(s) || Printable(s) != s {
		return strconv.Quote(s)
	}
	return s
}
