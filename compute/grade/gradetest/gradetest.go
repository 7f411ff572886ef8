// Package gradetest has a rule for tests of the packages that compute rewards, and an oracle. It is imported by tests
// alone.
package gradetest

import (
	"testing"

	"github.com/starling-network/starling/compute/grade"
)

// Rule rewards texts over four tokens, by terms that are cheap.
func Rule() []byte {
	r := grade.Rule{Ends: []uint32{3}, Terms: []grade.Term{
		{Kind: grade.Prefix, Key: grade.Completion, Weight: 1}, {Kind: grade.Regex, Pattern: "a1*$", Weight: 2},
		{Kind: grade.Starlark, Weight: 3, Steps: 300,
			Source: "def reward(prompt, answer, fields):\n  return answer.count('a') / (len(prompt) - 1)"}}}
	r.Pieces, r.Lengths = grade.Vocabulary([]string{"a", "1", "bc", ""})
	return r.Encode()
}

// Cost is that of Rule for answers of a number of tokens.
func Cost(t testing.TB, tokens int) int64 {
	g, err := grade.Decode(Rule())
	if err != nil {
		t.Fatal(err)
	}
	cost, err := g.Cost(tokens)
	if err != nil {
		t.Fatal(err)
	}
	return int64(cost)
}

// Reward is that of answer k alone, of m answers to n examples.
func Reward(t testing.TB, rule []byte, examples, answers []int64, n, m, k int) float32 {
	g, err := grade.Decode(rule)
	if err != nil {
		t.Fatal(err)
	}
	row := func(x []int64, rows, i int) (out []int32) {
		for _, v := range x[i*len(x)/rows : (i+1)*len(x)/rows] {
			out = append(out, int32(v))
		}
		return out
	}
	return g.Reward(row(examples, n, k*n/m), row(answers, m, k))
}
