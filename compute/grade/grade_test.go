package grade

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/grade/script"
)

// letters is a rule over bytes, of which the last stands for nothing and ends an answer.
func letters(fields bool, terms ...Term) Rule {
	tokens := make([]string, 257)
	for i := range 256 {
		tokens[i] = string([]byte{byte(i)})
	}
	r := Rule{Ends: []uint32{256}, Fields: fields, Terms: terms}
	r.Pieces, r.Lengths = Vocabulary(tokens)
	return r
}

// row is an example of letters, filled up.
func row(prompt, belongs string) (out []int32) {
	for _, c := range []byte(prompt) {
		out = append(out, int32(c)+257)
	}
	out = append(out, tokens(belongs)...)
	return append(out, 256, 257, 257)
}

func tokens(s string) (out []int32) {
	for _, c := range []byte(s) {
		out = append(out, int32(c))
	}
	return out
}

func TestTerms(t *testing.T) {
	const numbers = `{"numbers": [3, 7, 25, 50], "target": 64}`
	for _, c := range []struct {
		term    Term
		belongs string // with { first: the fields
		answer  string
		want    float32
	}{
		{Term{Kind: Exact}, "42", " 42\n", 1},
		{Term{Kind: Exact}, "42", "43", 0},
		{Term{Kind: Exact, Key: "n"}, `{"n": 42}`, "42", 1},
		{Term{Kind: Exact, Key: "m"}, `{"n": 42}`, "42", 0},
		{Term{Kind: Contains}, "42", "it is 42.", 1},
		{Term{Kind: Contains}, "42", "it is 4.", 0},
		{Term{Kind: Prefix}, "abcd", "abx", 0.5},
		{Term{Kind: Prefix}, "abcd", "abcdx", 1},
		{Term{Kind: Numeric}, "42", "the answer is 42.0.", 1},
		{Term{Kind: Numeric}, "#### 1,234", "so 1234", 1},
		{Term{Kind: Numeric}, "-5", "it is -5", 1},
		{Term{Kind: Numeric}, "5", "10-5", 1},
		{Term{Kind: Numeric}, "5", "-5", 0},
		{Term{Kind: Numeric, Tolerance: 0.01}, "3.14159", "3.14", 1},
		{Term{Kind: Numeric, Tolerance: 0.001}, "3.14159", "3.14", 0},
		{Term{Kind: Numeric, Key: "x"}, `{"x": 2.5}`, "2.50", 1},
		{Term{Kind: Numeric}, "42", "none", 0},
		{Term{Kind: Regex, Pattern: `^<a>.*</a>$`}, "", "<a>x</a>", 1},
		{Term{Kind: Regex, Pattern: `^<a>.*</a>$`}, "", "<a>x", 0},
		{Term{Kind: Length, Least: 1, Most: 3}, "", "äöü", 1},
		{Term{Kind: Length, Least: 1, Most: 3}, "", "abcd", 0},
		{Term{Kind: JSON}, "", `{"a": [1]}`, 1},
		{Term{Kind: JSON}, "", `{"a": [1}`, 0},
		{Term{Kind: Countdown}, numbers, "(7 * (3 + 50) + 25) / 3", 0}, // 3 twice
		{Term{Kind: Countdown}, numbers, "50 + 7 * (25 - 3) / 11", 0},  // 11 is not there
		{Term{Kind: Countdown}, numbers, "(50-25)*3-7-4", 0},
		{Term{Kind: Countdown}, `{"numbers": [3, 7, 25, 50], "target": 68}`, "(50 - 25) * 3 - 7 = 68.", 1},
		{Term{Kind: Countdown}, `{"numbers": [2, 3, 9], "target": 6}`, "9/3*2", 1},
		{Term{Kind: Countdown}, `{"numbers": [2, 3], "target": 0}`, "2/(3-3)", 0},
		{Term{Kind: Countdown}, `{"numbers": [2], "target": 2}`, strings.Repeat("(", 99) + "2" + strings.Repeat(")", 99), 0},
		{Term{Kind: Countdown}, `{"numbers": [2], "target": 2}`, "2 2", 0},
		{Term{Kind: Starlark, Source: "def reward(p, a, f):\n  return len(p) + len(a) / 2 + len(f['completion'])"},
			"ab", "cde", 6.5},
		{Term{Kind: Starlark, Source: "def reward(p, a, f):\n  return f['n'][1] == int(a)"}, `{"n": [1, 2]}`, "2", 1},
		{Term{Kind: Starlark, Source: "def reward(p, a, f):\n  return 1e9"}, "", "", MaxReward},
		{Term{Kind: Starlark, Source: "def reward(p, a, f):\n  return float('nan')"}, "", "", 0},
		{Term{Kind: Starlark, Source: "def reward(p, a, f):\n  return a"}, "", "x", 0},
		{Term{Kind: Starlark, Source: "def reward(p, a, f):\n  return 1 // 0"}, "", "x", 0},
	} {
		c.term.Weight = 1
		if c.term.Kind == Starlark {
			c.term.Steps = 1000
		}
		if c.term.Key == "" {
			c.term.Key = Completion
		}
		g, err := New(letters(strings.HasPrefix(c.belongs, "{"), c.term))
		if err != nil {
			t.Fatal(err)
		}
		end := append(tokens(c.answer), 256, 'z') // what follows the end does not count
		if got := g.Reward(row("ask", c.belongs), end); got != c.want {
			t.Errorf("%+v of %q to %q: %v, and not %v", c.term, c.answer, c.belongs, got, c.want)
		}
	}
}

func TestTermsHaveWeights(t *testing.T) {
	g, err := New(letters(false, Term{Kind: Exact, Key: Completion, Weight: 3},
		Term{Kind: Regex, Pattern: "^[0-9]+$", Weight: 1}))
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]float32{"42": 1, "41": 0.25, "x": 0} {
		if got := g.Reward(row("", "42"), tokens(answer)); got != want {
			t.Errorf("%s: %v, and not %v", answer, got, want)
		}
	}
}

func TestWrongRules(t *testing.T) {
	good := letters(false, Term{Kind: Exact, Weight: 1})
	if g, err := Decode(good.Encode()); err != nil || g.Reward(nil, nil) != 0 {
		t.Fatal(err)
	}
	long, wide := good, good
	long.Lengths, wide.Terms = long.Lengths[1:], make([]Term, MaxTerms+1)
	rules := map[string]Rule{"lengths": long, "terms": wide, "no term": letters(false)}
	for name, term := range map[string]Term{
		"kind":      {Kind: "other", Weight: 1},
		"weight":    {Kind: Exact},
		"nan":       {Kind: Exact, Weight: math.NaN()},
		"tolerance": {Kind: Numeric, Weight: 1, Tolerance: -1},
		"pattern":   {Kind: Regex, Weight: 1, Pattern: "("},
		"unicode":   {Kind: Regex, Weight: 1, Pattern: `\pL`},
		"repeated":  {Kind: Regex, Weight: 1, Pattern: `(a{30}){30}`},
		"lookahead": {Kind: Regex, Weight: 1, Pattern: `(?=a)`},
		"length":    {Kind: Length, Weight: 1, Least: 3, Most: 2},
		"steps":     {Kind: Starlark, Weight: 1, Source: "def reward(p, a, f): return 1"},
		"source":    {Kind: Starlark, Weight: 1, Steps: 1, Source: "def reward(p): return 1"},
	} {
		rules[name] = letters(false, term)
	}
	for name, r := range rules {
		if _, err := New(r); !errors.Is(err, ErrRule) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dear, err := New(letters(false, Term{Kind: Regex, Weight: 1, Pattern: `(a{20}){20}`},
		Term{Kind: Regex, Weight: 1, Pattern: `(b{20}){20}`}, Term{Kind: Starlark, Weight: 1,
			Source: "def reward(p, a, f): return 1", Steps: MaxSteps}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dear.Cost(10); err != nil {
		t.Error(err)
	}
	if _, err := dear.Cost(MaxText); !errors.Is(err, ErrRule) {
		t.Errorf("a reward beyond the largest cost: %v", err)
	}
}

// A function that takes too many steps rewards nothing, however little is missing; Try says why.
func TestStepsAreTheSameEverywhere(t *testing.T) {
	const source = "def reward(prompt, answer, fields):\n    return sum_(answer)\n" +
		"def sum_(s):\n    n = 0\n    for c in s.elems():\n        n += int(c)\n    return n / 10"
	of := func(steps int) *Grader {
		g, err := New(letters(false, Term{Kind: Starlark, Source: source, Steps: steps, Weight: 1}))
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	const enough = 105
	if got := of(enough).Reward(row("p", "w"), tokens("1234")); got != 1 {
		t.Errorf("with %d steps: %v", enough, got)
	}
	if got := of(enough-1).Reward(row("p", "w"), tokens("1234")); got != 0 {
		t.Errorf("with %d steps: %v", enough-1, got)
	}
	if err := of(enough-1).Try(row("p", "w"), tokens("1234")); !errors.Is(err, script.ErrCost) {
		t.Error(err)
	}
	if err := of(1000).Try(row("p", "w"), tokens("12x")); !errors.Is(err, script.ErrFailed) ||
		!strings.Contains(err.Error(), "reward:6:14") {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	small := Rule{Ends: []uint32{1}, Terms: []Term{{Kind: Regex, Pattern: "a+$", Weight: 1}, {Kind: Countdown, Weight: 2}}}
	small.Pieces, small.Lengths = Vocabulary([]string{"a", "", "bc"})
	f.Add(small.Encode())
	small.Fields, small.Terms[0] = true, Term{Kind: Starlark, Weight: 1, Steps: 99,
		Source: "def reward(p, a, f): return len(a)"}
	f.Add(small.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Decode(data)
		if err != nil {
			return
		}
		if _, err := g.Cost(3); err != nil {
			return
		}
		if x := g.Reward([]int32{5, 0, -1, 2}, []int32{0, 1 << 30, 2}); x != x || x > MaxReward || x < -MaxReward {
			t.Errorf("reward %v", x)
		}
	})
}

// Of tokens as long as a rule may be, no more is read than of others: the first bytes of an answer and of the fields,
// and the last of a prompt.
func TestLongTokensAreCut(t *testing.T) {
	long := strings.Repeat("ab", 1<<19)
	pieces, lengths := Vocabulary([]string{long, "c"})
	g, err := New(Rule{Pieces: pieces, Lengths: lengths, Terms: []Term{{Kind: JSON, Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	row := slices.Repeat([]int32{2}, 64) // silent: the prompt
	row = append(append(row, 3), slices.Repeat([]int32{0}, 64)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x := g.example(row, slices.Repeat([]int32{1, 0}, 64))
	runtime.ReadMemStats(&after)
	if x.prompt != long[:MaxText-1]+"c" && x.prompt != long[len(long)-MaxText+1:]+"c" {
		t.Errorf("a prompt of %d bytes ends with %q", len(x.prompt), x.prompt[len(x.prompt)-4:])
	}
	if x.answer != "c"+long[:MaxText-1] || x.fields[Completion] != long[:MaxText] {
		t.Errorf("an answer of %d bytes", len(x.answer))
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 1<<20 {
		t.Errorf("made %d bytes", made)
	}
}

// The last number of a text is found in little time, however many numbers the text has.
func TestLastNumber(t *testing.T) {
	for text, want := range map[string]float64{"a 1 b 2.5": 2.5, "1,234.5.": 1234.5, "7-3": 3, "x = -3": -3, "é-4é": -4,
		"1 2 3,": 3, ".5": 0.5, "12,34": 34, "1,234,567": 1234567, "a-1": 1, "(-1": -1} {
		if got, ok := lastNumber(text); !ok || got != want {
			t.Errorf("%q: %v, %t, want %v", text, got, ok, want)
		}
	}
	if _, ok := lastNumber("none"); ok {
		t.Error("a text without a number has one")
	}
}
