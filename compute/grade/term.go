package grade

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/grade/script"
)

// term makes a term ready.
func (t Term) term() (made *term, err error) {
	made = &term{}
	if len(t.Key) > 256 {
		return made, errors.New("its key is longer than 256 bytes")
	}
	made.cost = func(answer int) int { return 2*MaxText/16 + answer }
	wanted := func(compare func(answer, wanted string) float64) (*term, error) {
		made.reward = func(x example) float64 {
			s, ok := textOf(x.fields[t.Key])
			if !ok {
				return 0
			}
			return compare(strings.Trim(x.answer, spaces), strings.Trim(s, spaces))
		}
		return made, nil
	}
	switch t.Kind {
	case Exact:
		return wanted(func(a, w string) float64 { return one(a == w) })
	case Contains:
		return wanted(func(a, w string) float64 { return one(w != "" && strings.Contains(a, w)) })
	case Prefix:
		return wanted(sharedPrefix)
	case Numeric:
		return made, t.numeric(made)
	case Regex:
		return made, t.regex(made)
	case Length:
		if t.Least < 0 || t.Most < t.Least || t.Most == 0 {
			return made, fmt.Errorf("from %d to %d characters", t.Least, t.Most)
		}
		made.reward = func(x example) float64 {
			n := utf8.RuneCountInString(strings.Trim(x.answer, spaces))
			return one(n >= t.Least && n <= t.Most)
		}
	case JSON:
		made.reward = func(x example) float64 { return one(json.Valid([]byte(x.answer))) }
	case Countdown:
		made.reward = func(x example) float64 { return one(countdown(x.answer, x.fields["numbers"], x.fields["target"])) }
	case Starlark:
		return made, t.starlark(made)
	default:
		return made, errors.New("there is no such kind")
	}
	return made, nil
}

const spaces = " \t\n\v\f\r"

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// textOf is a field as a text: a text itself, or a number as it is written.
func textOf(field any) (string, bool) {
	switch v := field.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

func sharedPrefix(answer, wanted string) float64 {
	n := 0
	for n < len(answer) && n < len(wanted) && answer[n] == wanted[n] {
		n++
	}
	if len(wanted) == 0 {
		return one(answer == "")
	}
	return float64(n) / float64(len(wanted))
}

// numeric compares the last numbers of two texts.
func (t Term) numeric(made *term) error {
	if !(t.Tolerance >= 0) || !finite(t.Tolerance) {
		return fmt.Errorf("tolerance %v", t.Tolerance)
	}
	made.reward = func(x example) float64 {
		s, _ := textOf(x.fields[t.Key])
		w, ok1 := lastNumber(s)
		a, ok2 := lastNumber(x.answer)
		return one(ok1 && ok2 && math.Abs(a-w) <= t.Tolerance)
	}
	return nil
}

const digits = "0123456789"

// number is a decimal number, with commas between groups of three digits or without.
var number = regexp.MustCompile(`-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|-?\.[0-9]+`)

// lastNumber is the last decimal number of a text. A minus sign belongs to it, if no digit, letter or bracket is before
// the sign.
func lastNumber(s string) (float64, bool) {
	last := strings.LastIndexAny(s, digits)
	if last < 0 {
		return 0, false
	}
	begin := strings.LastIndexFunc(s[:last], func(r rune) bool { return !strings.ContainsRune(digits+".,-", r) }) + 1
	all := number.FindAllStringIndex(s[begin:last+1], -1) // that of the whole text takes long for many numbers
	from, to := begin+all[len(all)-1][0], begin+all[len(all)-1][1]
	if s[from] == '-' && from > 0 && afterValue.MatchString(s[from-1:from]) {
		from++
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(s[from:to], ",", ""), 64)
	return x, err == nil
}

// afterValue is what stands before an operator.
var afterValue = regexp.MustCompile(`[0-9A-Za-z)\]]`)

// maxInstructions of a compiled regular expression.
const maxInstructions = 512

// regex matches a regular expression anywhere in the answer.
func (t Term) regex(made *term) error {
	if t.Pattern == "" || len(t.Pattern) > MaxPattern {
		return fmt.Errorf("the regular expression has %d bytes, from 1 to %d are taken", len(t.Pattern), MaxPattern)
	}
	for i := 0; i+1 < len(t.Pattern); i++ {
		if t.Pattern[i] == '\\' {
			if i++; t.Pattern[i] == 'p' || t.Pattern[i] == 'P' {
				return errors.New(`the regular expression has a class of Unicode, such as \pL: which characters it has ` +
					`depends on the version of Unicode; use a range, such as [a-z]`)
			}
		}
	}
	tree, err := syntax.Parse(t.Pattern, syntax.Perl)
	if err != nil {
		return err
	}
	code, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return err
	}
	n := len(code.Inst)
	if n > maxInstructions {
		return fmt.Errorf("the regular expression has %d instructions, at most %d are taken: repeat less in it", n,
			maxInstructions)
	}
	expression, err := regexp.Compile(t.Pattern)
	if err != nil {
		return err
	}
	made.cost = func(answer int) int { return n * (answer + 1) }
	made.reward = func(x example) float64 { return one(expression.MatchString(x.answer)) }
	return nil
}

// Function is the name of a function of the author. Its parameters are the prompt and the answer as texts, and a dict
// of the fields that belong to the prompt; its result is a number, or a bool.
const Function = "reward"

func (t Term) starlark(made *term) error {
	if t.Steps < 1 || t.Steps > MaxSteps {
		return fmt.Errorf("%d steps, from 1 to %d are taken", t.Steps, MaxSteps)
	}
	s, err := script.Compile(t.Source, Function, 3)
	if err != nil {
		return err
	}
	made.cost = func(int) int { return t.Steps }
	made.check = func(x example) (float64, error) {
		out, err := s.Call(t.Steps, x.prompt, x.answer, x.fields)
		if err != nil {
			return 0, err
		}
		switch v := out.(type) {
		case bool:
			return one(v), nil
		case int64:
			return float64(v), nil
		case float64:
			return v, nil
		}
		return 0, fmt.Errorf("%w: %s returned %v, which is no number", script.ErrFailed, Function, out)
	}
	made.reward = func(x example) float64 {
		v, err := made.check(x)
		if err != nil {
			return 0
		}
		return v
	}
	return nil
}
