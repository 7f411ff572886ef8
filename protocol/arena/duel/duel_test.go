package duel

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
)

// The verdict is that of a test of the mean where it is clear, and the same for the same seed.
func TestVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 192))
	for n := range 200 {
		a, b, better := make([]uint32, 500), make([]uint32, 500), uint32(30_000*r.Float64())
		for i := range a {
			a[i] = 3_000_000 + r.Uint32N(1_000_000)
			b[i] = a[i] + better + r.Uint32N(400_000) - 200_000
		}
		sum, squares := 0.0, 0.0
		for i := range a {
			d := float64(b[i]) - float64(a[i])
			sum += d
			squares += d * d
		}
		m := sum / 500
		z := m / math.Sqrt((squares/500-m*m)/500)
		p := math.Erfc(z/math.Sqrt2) / 2
		seed := canon.Sum(fmt.Sprint(n))
		got, err := Better(a, b, seed)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Better(a, b, seed); again != got {
			t.Fatal("the same duel has another verdict")
		}
		if got && p > 0.06 || !got && p < 0.008 {
			t.Errorf("duel %d with p = %.4f: %v", n, p, got)
		}
	}
	if _, err := Better([]uint32{1}, nil, canon.Digest{}); !errors.Is(err, ErrLosses) {
		t.Error(err)
	}
	if equal, _ := Better([]uint32{1, 2, 3}, []uint32{1, 2, 3}, canon.Digest{}); equal {
		t.Error("a model is better than itself")
	}
	if one, _ := Better([]uint32{1, 2, 3}, []uint32{2, 3, 4}, Seed(canon.Digest{}, 1, 2)); !one {
		t.Error("a model that is better on every example is not better")
	}
}

// The verdict is pinned: another would let validators of two versions disagree.
func TestGolden(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 192))
	got := ""
	for n := range 40 {
		a, b := make([]uint32, 101), make([]uint32, 101)
		for i := range a {
			a[i], b[i] = r.Uint32N(1000), 15*uint32(n)+r.Uint32N(1000)-min(15*uint32(n), 200)
		}
		better, _ := Better(a, b, Seed(canon.Sum("golden"), 1, uint32(n)))
		got += map[bool]string{true: "x", false: "."}[better]
	}
	if want := "................x..xxxx.xxxxxxxxxxxxxxxx"; got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
	if d := Digest([]uint32{1, 2, 3}); Mean([]uint32{1, 2, 4}) != 2 || d == Digest([]uint32{1, 2, 4}) {
		t.Error(d)
	}
}
