package ladder

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

const (
	unit     = 1 << 20
	examples = 1000
	queries  = 1000
	strength = unit / 10 // of a change of the loss of an example
)

// board gives a score to losses.
type board func(losses []uint32) (score uint64, better bool)

// exact is a board that shows the mean.
func exact(losses []uint32) (uint64, bool) {
	sum := uint64(0)
	for _, x := range losses {
		sum += uint64(x)
	}
	return sum, true
}

// attack submits models whose losses differ from those of a model by signs that say nothing about the text, and
// combines them by the scores that the board shows: it learns the examples, and nothing else. It returns how much
// better the last one is on the hidden set, in standard deviations of the change.
func attack(r *rand.Rand, show board, adaptive bool) float64 {
	base := make([]uint32, examples)
	for i := range base {
		base[i] = 3*unit + r.Uint32N(unit/2)
	}
	changed := func(signs []int) []uint32 {
		out := slices.Clone(base)
		for i, s := range signs {
			switch {
			case s > 0:
				out[i] -= strength
			case s < 0:
				out[i] += strength
			}
		}
		return out
	}
	votes := make([]int, examples)
	first, _ := show(base)
	for range queries {
		signs := make([]int, examples)
		for i := range signs {
			if signs[i] = 2*r.IntN(2) - 1; adaptive {
				signs[i] += votes[i] // the best so far, with a change
			}
		}
		score, better := show(changed(signs))
		switch {
		case adaptive && better:
			copy(votes, signs)
		case adaptive:
		case score < first:
			for i, s := range signs {
				votes[i] += s
			}
		case score > first:
			for i, s := range signs {
				votes[i] -= s
			}
		}
	}
	gain := 0
	for _, v := range votes {
		switch {
		case v > 0:
			gain++
		case v < 0:
			gain--
		}
	}
	return float64(gain) / examples
}

// An attacker that asks 1,000 times gains less than half of a standard deviation from the ladder, and more from a board
// that shows the mean.
func TestAttackers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 192))
	gain := attack(r, exact, false)
	t.Logf("exact means: a gain of %.3f standard deviations", gain)
	if gain < 0.5 {
		t.Errorf("the attack gains %.2f standard deviations from exact means: it is none", gain)
	}
	for _, adaptive := range []bool{false, true} {
		for range 3 {
			var l Ladder
			gain := attack(r, func(losses []uint32) (uint64, bool) {
				var score uint64
				var better bool
				var err error
				if l, score, better, err = l.Score(losses); err != nil {
					t.Fatal(err)
				}
				return score, better
			}, adaptive)
			t.Logf("adaptive %v: a gain of %.3f standard deviations", adaptive, gain)
			if gain >= 0.5 || l.Queries != queries+1 {
				t.Errorf("the attack gains %.2f standard deviations in %d queries", gain, l.Queries)
			}
		}
	}
}

// A model that is clearly better has its score, rounded, and one that is not has that of the best.
func TestScore(t *testing.T) {
	var l Ladder
	losses := slices.Repeat([]uint32{2 * unit, 3 * unit}, 50)
	l, score, better, err := l.Score(losses)
	if err != nil || !better || score%grain > 0 || score > 5*unit/2+grain || score+grain < 5*unit/2 {
		t.Errorf("%d, %v, %v", score, better, err)
	}
	worse := slices.Clone(losses)
	worse[0]++
	if _, again, better, err := l.Score(worse); err != nil || better || again != score {
		t.Errorf("%d, %v, %v", again, better, err)
	}
	noise := slices.Clone(losses)
	noise[0], noise[1] = noise[0]-unit, noise[1]+unit-1
	if _, again, better, err := l.Score(noise); err != nil || better || again != score {
		t.Errorf("%d, %v, %v", again, better, err)
	}
	for i := range losses {
		worse[i] = losses[i] - unit/10
	}
	next, score, better, err := l.Score(worse)
	if err != nil || !better || score >= l.Shown {
		t.Errorf("%d, %v, %v", score, better, err)
	}
	if back, err := Decode(canon.MustMarshal(next)); err != nil || back.Shown != next.Shown || back.Queries != 2 {
		t.Errorf("%+v, %v", back, err)
	}
	if _, _, _, err := l.Score(losses[1:]); !errors.Is(err, ErrLosses) {
		t.Error(err)
	}
}
