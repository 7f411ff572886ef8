// Package grade rewards texts that a model has drawn, by rules that are data: a comparison with a wanted text or
// number, a regular expression, or a function of the job's author. A reward has the same bits on every machine, and a
// bounded cost: so a worker computes it within a step, and a dispute computes one of them again.
//
// It reads tokens, and knows no tokenizer: a Rule holds the bytes of all tokens. It does not know what learns from a
// reward.
package grade

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
)

// ErrRule is wrapped by errors about rules that nothing can be rewarded by.
var ErrRule = errors.New("grade: invalid rule")

// TermError is an error about one term of a rule. It wraps ErrRule.
type TermError struct {
	Term int
	Kind string
	Err  error // what is wrong with it
}

// Error names the term and what is wrong with it.
func (e *TermError) Error() string {
	return fmt.Sprintf("%v: term %d, %.20q: %v", ErrRule, e.Term, e.Kind, e.Err)
}

// Unwrap returns the cause and ErrRule.
func (e *TermError) Unwrap() []error { return []error{ErrRule, e.Err} }

// Limits.
const (
	MaxTerms   = 8       // of a rule
	MaxText    = 8 << 10 // bytes that are read of a prompt, of an answer and of the fields of a prompt
	MaxCost    = 1 << 22 // of a reward, in steps
	MaxSteps   = 1 << 19 // of a function of the author
	MaxReward  = 1000    // of a function of the author: results beyond it count as this number
	MaxPattern = 1 << 9  // bytes of a regular expression
	maxEnds    = 16
	maxPieces  = 1 << 20
)

// Rule says how an answer is rewarded: by the mean of its terms, by their weights.
type Rule struct {
	Pieces  []byte   `cbor:"1,keyasint"` // the bytes of all tokens, one after the other
	Lengths []byte   `cbor:"2,keyasint"` // how many of them each token has, as a varint
	Ends    []uint32 `cbor:"3,keyasint"` // tokens that end an answer; their bytes belong to it
	Fields  bool     `cbor:"4,keyasint"` // what belongs to a prompt is a JSON object; else it is the wanted answer
	Terms   []Term   `cbor:"5,keyasint"`
}

// Term is one way to reward an answer. Each reads what belongs to the prompt under a key of its own.
type Term struct {
	Kind      string  `cbor:"1,keyasint"` // one of Kinds
	Weight    float64 `cbor:"2,keyasint"`
	Key       string  `cbor:"3,keyasint"` // of the field that the answer is compared with
	Tolerance float64 `cbor:"4,keyasint"` // of Numeric: largest difference
	Pattern   string  `cbor:"5,keyasint"` // of Regex
	Least     int     `cbor:"6,keyasint"` // of Length: characters
	Most      int     `cbor:"7,keyasint"`
	Source    string  `cbor:"8,keyasint"` // of Starlark
	Steps     int     `cbor:"9,keyasint"` // of Starlark: an answer whose reward costs more has none
}

// Kinds of terms. All but Starlark reward from 0 to 1. Space around texts that are compared does not count.
const (
	Exact     = "exact"     // 1 for the wanted text
	Prefix    = "prefix"    // the share of the wanted text before the first wrong byte
	Contains  = "contains"  // 1 for an answer that contains the wanted text
	Numeric   = "numeric"   // 1 if the last number of the answer is the wanted one
	Regex     = "regex"     // 1 if the answer matches a regular expression (RE2)
	Length    = "length"    // 1 for an answer with a number of characters
	JSON      = "json"      // 1 for an answer that is a JSON value
	Countdown = "countdown" // 1 for an expression of the numbers of the prompt that has the wanted value
	Starlark  = "starlark"  // what a function of the author returns
)

// Completion is the key under which there is the wanted answer, where nothing but it belongs to a prompt.
const Completion = "completion"

// Vocabulary returns the Pieces and the Lengths of a Rule.
func Vocabulary(tokens []string) (pieces, lengths []byte) {
	for _, t := range tokens {
		pieces = append(pieces, t...)
		lengths = binary.AppendUvarint(lengths, uint64(len(t)))
	}
	return pieces, lengths
}

// Encode returns the canonical bytes.
func (r Rule) Encode() []byte { return canon.MustMarshal(r) }

// Grader is a Rule that is ready. It may be used by several goroutines at once.
type Grader struct {
	ends    map[uint32]bool
	tokens  []string
	longest int // bytes of a token
	fields  bool
	terms   []*term
	total   float64 // weight
}

// term rewards an answer.
type term struct {
	weight float64
	cost   func(answer int) int // for answers of a number of bytes
	reward func(x example) float64
	check  func(x example) (float64, error) // of a function of the author: its result, or why there is none
}

// example is an answer, and what it is rewarded by.
type example struct {
	prompt, answer string
	fields         map[string]any
}

// Decode reads the canonical bytes of a rule from anybody. The error wraps ErrRule.
func Decode(data []byte) (*Grader, error) {
	var r Rule
	if err := canon.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRule, err)
	}
	return New(r)
}

// New makes a rule ready. The error wraps ErrRule.
func New(r Rule) (*Grader, error) {
	g := &Grader{ends: map[uint32]bool{}, fields: r.Fields}
	if err := g.read(r.Pieces, r.Lengths); err != nil {
		return nil, err
	}
	if len(r.Ends) > maxEnds || len(r.Terms) < 1 || len(r.Terms) > MaxTerms {
		return nil, fmt.Errorf("%w: %d terms and %d tokens that end an answer, at most %d and %d are taken", ErrRule,
			len(r.Terms), len(r.Ends), MaxTerms, maxEnds)
	}
	for _, e := range r.Ends {
		g.ends[e] = true
	}
	for i, t := range r.Terms {
		if !(t.Weight > 0 && t.Weight <= 1000) {
			return nil, fmt.Errorf("%w: weight %v of term %d", ErrRule, t.Weight, i)
		}
		made, err := t.term()
		if err != nil {
			return nil, &TermError{Term: i, Kind: t.Kind, Err: err}
		}
		made.weight = t.Weight
		g.terms = append(g.terms, made)
		g.total += t.Weight
	}
	return g, nil
}

// read takes the bytes of the tokens apart.
func (g *Grader) read(pieces, lengths []byte) error {
	for len(lengths) > 0 {
		n, size := binary.Uvarint(lengths)
		if size <= 0 || n > uint64(len(pieces)) || len(g.tokens) == maxPieces {
			return fmt.Errorf("%w: these are not the lengths of tokens", ErrRule)
		}
		g.tokens = append(g.tokens, string(pieces[:n]))
		pieces, lengths = pieces[n:], lengths[size:]
		g.longest = max(g.longest, int(n))
	}
	if len(pieces) > 0 || len(g.tokens) == 0 {
		return fmt.Errorf("%w: %d bytes belong to none of %d tokens", ErrRule, len(pieces), len(g.tokens))
	}
	return nil
}

// base is the cost of decoding what a reward reads, JSON among it.
const base = 1 << 15

// Cost bounds the cost of a reward of an answer of a number of tokens, in steps of a script. The error wraps ErrRule
// for one above MaxCost.
func (g *Grader) Cost(tokens int) (int, error) {
	sum, text := base, min(tokens*g.longest, MaxText)
	for _, t := range g.terms {
		sum += t.cost(text)
	}
	if sum > MaxCost {
		return 0, fmt.Errorf("%w: the reward of an answer of %d tokens takes up to %d steps, at most %d are allowed", ErrRule,
			tokens, sum, MaxCost)
	}
	return sum, nil
}

// Check reports what is wrong with the bytes of a rule for answers of a number of tokens, of which ints is the bound of
// the cost, as an error that wraps ErrRule.
func Check(rule []byte, tokens int, ints []int64) error {
	g, err := Decode(rule)
	if err != nil {
		return err
	}
	cost, err := g.Cost(tokens)
	if err == nil && (len(ints) != 1 || ints[0] != int64(cost)) {
		err = fmt.Errorf("%w: the cost is said to be %v, and is %d", ErrRule, ints, cost)
	}
	return err
}

// Rewards rewards answers lo up to hi of rows of the given lengths; group of them are to the prompt of one example.
func (g *Grader) Rewards(to []float32, examples, answers []int32, length, each, group, lo, hi int) {
	for i := lo; i < hi; i++ {
		row := i / group * length
		to[i] = g.Reward(examples[row:row+length], answers[i*each:(i+1)*each])
	}
}

// Reward is that of an answer to the prompt of an example. In the example the tokens of the prompt are silent: they are
// those of the vocabulary, plus its size; then comes what belongs to the prompt, and silent tokens again.
func (g *Grader) Reward(row, answer []int32) float32 {
	x := g.example(row, answer)
	sum := 0.0
	for _, t := range g.terms {
		each := t.reward(x)
		if each != each { // is no number
			each = 0
		}
		each = min(max(each, -MaxReward), MaxReward)
		sum += float64(t.weight * each)
	}
	return float32(sum / g.total)
}

// Answer is the text that is rewarded of the tokens of an answer.
func (g *Grader) Answer(answer []int32) string { return g.text(g.ended(answer)) }

// Try reports why a function of the author has no result for an answer to the prompt of an example, which Reward
// takes as 0. The error wraps script.ErrFailed or script.ErrCost.
func (g *Grader) Try(row, answer []int32) error {
	x := g.example(row, answer)
	for _, t := range g.terms {
		if t.check != nil {
			if _, err := t.check(x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Grader) example(row, answer []int32) example {
	size := int32(len(g.tokens))
	first := 0
	for first < len(row) && row[first] >= size {
		first++
	}
	last := first
	for last < len(row) && row[last] < size {
		last++
	}
	x := example{prompt: g.silent(row[:first]), answer: g.Answer(answer)}
	belongs := g.text(row[first:last])
	if g.fields {
		x.fields = object(belongs)
	} else {
		x.fields = map[string]any{Completion: belongs}
	}
	return x
}

// ended are the tokens up to the first that ends an answer.
func (g *Grader) ended(tokens []int32) []int32 {
	for i, t := range tokens {
		if t >= 0 && g.ends[uint32(t)] {
			return tokens[:i+1]
		}
	}
	return tokens
}

// piece is what a token stands for: nothing if it is none of the vocabulary.
func (g *Grader) piece(id int64) string {
	if id < 0 || id >= int64(len(g.tokens)) {
		return ""
	}
	return g.tokens[id]
}

// text is what tokens stand for, its first MaxText bytes at most. A token of a stranger may be as long as its rule.
func (g *Grader) text(tokens []int32) string {
	var b []byte
	for _, t := range tokens {
		p := g.piece(int64(t))
		if b = append(b, p[:min(len(p), MaxText-len(b))]...); len(b) == MaxText {
			break
		}
	}
	return string(b)
}

// silent is what silent tokens stand for, its last MaxText bytes at most.
func (g *Grader) silent(tokens []int32) string {
	size, first := 0, len(tokens)
	for first > 0 && size < MaxText {
		first--
		size += len(g.piece(int64(tokens[first]) - int64(len(g.tokens))))
	}
	b := make([]byte, 0, min(size, MaxText))
	for _, t := range tokens[first:] {
		p := g.piece(int64(t) - int64(len(g.tokens)))
		skipped := min(len(p), max(0, size-MaxText))
		b, size = append(b, p[skipped:]...), size-skipped
	}
	return string(b)
}

func finite(x float64) bool { return !math.IsInf(x, 0) && x == x }
