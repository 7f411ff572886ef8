package aggregate

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// of makes updates of one vector each, units from 0 on, all of weight 1.
func of(rows ...[]float32) []Update {
	var out []Update
	for i, r := range rows {
		out = append(out, Update{uint32(i), 1, []*tensor.Tensor{tensor.FromF32(r, len(r))}})
	}
	return out
}

// numbers makes updates of one element each.
func numbers(x ...float32) []Update {
	var rows [][]float32
	for _, v := range x {
		rows = append(rows, []float32{v})
	}
	return of(rows...)
}

func combine(t testing.TB, r Rule, updates []Update) []float32 {
	t.Helper()
	out, err := Combine(r, updates)
	if err != nil {
		t.Fatalf("%#v: %v", r, err)
	}
	return out[0].F32()
}

var rules = []struct {
	name string
	Rule
}{
	{Mean, Average{}}, {TrimmedMean, Trim{0.3}}, {Median, CoordinateMedian{}}, {"contributors", ContributorMean{}},
	{Krum, named[Krum]}, {MultiKrum, named[MultiKrum]}, {GeometricMedian, named[GeometricMedian]},
	{CenteredClip, named[CenteredClip]},
	{ClippedMean, named[ClippedMean]}, {"sparse", NormClip{ContributorMean{}}},
}

func TestByHand(t *testing.T) {
	four := of([]float32{1, -1}, []float32{2, 5}, []float32{3, 0}, []float32{100, -50})
	five := of([]float32{1, -1}, []float32{2, 5}, []float32{3, 0}, []float32{100, -50}, []float32{2.5, 4})
	for _, c := range []struct {
		name    string
		rule    Rule
		updates []Update
		want    []float32
	}{
		{"mean", Average{}, four, []float32{26.5, -11.5}},
		{"trimmed", Trim{0.25}, four, []float32{2.5, -0.5}},
		{"a fifth of four is none", Trim{0.2}, four, []float32{26.5, -11.5}},
		{"never all of them", Trim{0.5}, four, []float32{2.5, -0.5}},
		{"median of the middle two", CoordinateMedian{}, four, []float32{2.5, -0.5}},
		{"median", CoordinateMedian{}, five, []float32{2.5, 0}},
		{"contributors", ContributorMean{}, of([]float32{4, 0, 0}, []float32{2, 0, -3}, []float32{0, 0, 0}),
			[]float32{3, 0, -3}},
		// Squared distances to the three nearest: 41 27 21 26 30 22 70. With fourth powers, a known mistake, 9 would win.
		{"krum", Selection{Hostile: 2, Keep: 1}, numbers(0, 1, 2, 6, 7, 9, 12), []float32{2}},
		// The mean, not the sum, of the best two.
		{"multi-krum", Selection{Hostile: 2, Keep: 2}, numbers(0, 1, 2, 6, 7, 9, 12), []float32{5.5}},
		{"multi-krum of three", Selection{Hostile: 2}, numbers(0, 1, 2, 6, 7, 9, 12), []float32{(2 + 6 + 9) / 3.}},
		{"krum tie", Selection{Keep: 1}, numbers(3, 2, 1, 0), []float32{2}},
		{"krum of one", Selection{Keep: 1}, numbers(7), []float32{7}},
		{"krum of two", Selection{Keep: 1}, numbers(8, 7), []float32{8}},
		// From the center: (3, 4) shortened to (0.6, 0.8), and (0, 0.5); their mean.
		{"centered clip", CenteredClipping{Center: of([]float32{0, 0})[0].Tensors, Radius: 1, Iterations: 1},
			of([]float32{3, 4}, []float32{0, 0.5}), []float32{0.3, 0.65}},
		{"within the radius it is the mean", CenteredClipping{Radius: 1000, Iterations: 1}, four, []float32{26.5, -11.5}},
		// Lengths 5, 1, 2: the median is 2.
		{"norm clip", NormClip{Average{}}, of([]float32{3, 4}, []float32{0, 1}, []float32{-2, 0}),
			[]float32{(1.2 - 2) / 3, 2.6 / 3}},
	} {
		got := combine(t, c.rule, c.updates)
		for i, w := range c.want {
			if math.Abs(float64(got[i]-w)) > 1e-6*math.Abs(float64(w)) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

// In a triangle with an angle of 120 degrees or more the geometric median is that corner; in an equilateral one it is
// the center; and of the corners of a convex quadrangle it is where the diagonals cross.
func TestGeometricMedian(t *testing.T) {
	root3 := float32(math.Sqrt(3))
	for _, c := range []struct {
		points [][]float32
		want   [2]float64
	}{
		{[][]float32{{-1, 0}, {1, 0}, {0, 0.1}}, [2]float64{0, 0.1}},
		{[][]float32{{-1, 0}, {1, 0}, {0, root3}}, [2]float64{0, math.Sqrt(3) / 3}},
		{[][]float32{{0, 0}, {4, 4}, {0, 3}, {3, 0}}, [2]float64{1.5, 1.5}},
		{[][]float32{{0, 0}, {0, 0}, {0, 0}, {1e15, 3e15}, {-7e15, 0}}, [2]float64{0, 0}},
	} {
		got := combine(t, Weiszfeld{Smooth: 1e-6, Iterations: 200}, of(c.points...))
		for i, w := range c.want {
			if math.Abs(float64(got[i])-w) > 2e-3 {
				t.Errorf("median of %v is %v, want %v", c.points, got, c.want)
			}
		}
	}
}

// Weights: the tokens of a straggler that stopped early count for as much as they are; who sent nothing does not count
// in the denominator either.
func TestMeanCountsContributorsByTheirTokens(t *testing.T) {
	u := numbers(1, 4, 1e6)
	u[0].Weight, u[1].Weight, u[2].Weight = 300, 100, 0
	if got := combine(t, Average{}, u)[0]; got != 1.75 {
		t.Errorf("mean %v, want 1.75", got)
	}
	if got := combine(t, Average{}, u[:1])[0]; got != 1 {
		t.Errorf("the mean of one is %v", got)
	}
	for i := range u {
		u[i].Weight = 512 // equal weights weigh nothing
	}
	if got, want := combine(t, Average{}, u)[0], combine(t, Average{}, numbers(1, 4, 1e6))[0]; got != want {
		t.Errorf("mean %v, want %v", got, want)
	}
}

// Identical updates are one update, to the bit for 1, 2, 4 and 8, and for any number with rules that add nothing up.
func TestEqualUpdatesAreOne(t *testing.T) {
	x := make([]float32, 3000)
	philox.NormalTo(x, 5, 0)
	x[7], x[8] = -3e-40, 7e15
	for _, r := range rules {
		for _, n := range []int{1, 2, 4, 8} {
			got := combine(t, r.Rule, of(slices.Repeat([][]float32{x}, n)...))
			// Of the others some average three, and some multiply by shares that are rounded.
			exact := !slices.Contains([]string{MultiKrum, GeometricMedian, CenteredClip, "buckets"}, r.name)
			for i := range x {
				if exact && got[i] != x[i] ||
					math.Abs(float64(got[i]-x[i])) > 1e-6*math.Abs(float64(x[i]))+1e-44 {
					t.Fatalf("%s of %d: element %d is %v, want %v", r.name, n, i, got[i], x[i])
				}
			}
		}
	}
}

func random(n, size int, seed uint64) []Update {
	var rows [][]float32
	for i := range n {
		x := make([]float32, size)
		philox.NormalTo(x, seed, uint64(i))
		rows = append(rows, x)
	}
	return of(rows...)
}

// The order of arrival changes no bit.
func TestOrderOfArrivalDoesNotMatter(t *testing.T) {
	for _, r := range rules {
		for _, n := range []int{1, 2, 5, 9, 16} {
			u := random(n, 2000, 1)
			want := combine(t, r.Rule, u)
			dice := philox.New(3, 0)
			for range 3 {
				for i := n - 1; i > 0; i-- {
					j := dice.Uint64n(uint64(i + 1))
					u[i], u[j] = u[j], u[i]
				}
				if got := combine(t, r.Rule, u); !slices.Equal(got, want) {
					t.Errorf("%s of %d depends on the order of arrival", r.name, n)
				}
			}
		}
	}
}

// Which unit sent what changes no bit of rules that sort, and only the rounding of the others, but for buckets.
func TestUnitsAreAlike(t *testing.T) {
	for _, r := range rules {
		if r.name == "buckets" {
			continue
		}
		u := random(9, 2000, 1)
		want := combine(t, r.Rule, u)
		for i := range u {
			u[i].Unit = 8 - u[i].Unit
		}
		got := combine(t, r.Rule, u)
		for i := range got {
			exact := r.name == TrimmedMean || r.name == Median || r.name == Krum
			if exact && got[i] != want[i] || math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("%s: element %d is %v or %v, by who sent it", r.name, i, got[i], want[i])
			}
		}
	}
}

func TestPathsGiveTheSameBits(t *testing.T) {
	defer func() {
		if err := kernel.Select(""); err != nil {
			t.Error(err)
		}
	}()
	for _, r := range rules {
		var got [2][]float32
		for i, path := range []string{"portable", ""} {
			if err := kernel.Select(path); err != nil {
				t.Fatal(err)
			}
			got[i] = combine(t, r.Rule, random(7, 5003, 2))
		}
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s: portable and fastest kernels differ", r.name)
		}
	}
}

// A change of these roots is a change of the bits of every checkpoint combined by the rule.
func TestGoldenRules(t *testing.T) {
	const file = "testdata/rules.txt"
	var got strings.Builder
	for _, r := range rules {
		u := random(9, 5003, 2)
		for i := range u {
			u[i].Weight = float64(1 + i%2)
		}
		out, err := Combine(r.Rule, u)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%-16s %s\n", r.name, out[0].Root().Short())
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got.String() {
		t.Fatalf("%v, got\n%s", err, got.String())
	}
}

func TestUpdatesStayAsTheyAre(t *testing.T) {
	for _, r := range rules {
		u, same := random(7, 100, 4), random(7, 100, 4)
		combine(t, r.Rule, u)
		for i := range u {
			if u[i].Unit != same[i].Unit || u[i].Tensors[0].Root() != same[i].Tensors[0].Root() {
				t.Errorf("%s changed update %d", r.name, i)
			}
		}
	}
}

// The network sorts every list of zeros and ones, and so every list (Knuth, theorem 5.3.4Z).
func TestNetworkSorts(t *testing.T) {
	for n := range 13 {
		pairs := network(n)
		for bits := range 1 << n {
			x := bits
			for _, p := range pairs {
				if x>>p[0]&1 > x>>p[1]&1 {
					x ^= 1<<p[0] | 1<<p[1]
				}
			}
			for i := 1; i < n; i++ {
				if x>>(i-1)&1 > x>>i&1 {
					t.Fatalf("%d values: %b became %b", n, bits, x)
				}
			}
		}
	}
}

func TestRefused(t *testing.T) {
	twice := numbers(1, 2)
	twice[1].Unit = 0
	heavy := numbers(1, 2)
	heavy[0].Weight = math.NaN()
	none := numbers(1)
	none[0].Weight = 0
	uneven := numbers(1, 2)
	uneven[1].Tensors = append(uneven[1].Tensors, tensor.Scalar(1))
	for name, u := range map[string][]Update{
		"no updates": nil, "different shapes": of([]float32{1}, []float32{1, 2}), "one unit twice": twice,
		"a weight that is none": heavy,
		"nothing of weight":     none, "different numbers of tensors": uneven,
	} {
		if _, err := Combine(Average{}, u); !errors.Is(err, ErrUpdates) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range []Rule{
		Trim{-0.1}, Trim{math.NaN()}, Trim{0.6}, Selection{Hostile: 1}, Weiszfeld{}, Weiszfeld{Smooth: 1}, CenteredClipping{},
		CenteredClipping{Radius: -1, Iterations: 1},
		CenteredClipping{Center: of([]float32{1, 2})[0].Tensors, Iterations: 1},
		CenteredClipping{Center: []*tensor.Tensor{}, Iterations: 1}, CenteredClipping{Center: numbers(3e38)[0].Tensors,
			Iterations: 1},
	} {
		if out, err := Combine(r, numbers(1, 2, 3, 4)); err == nil {
			t.Errorf("%#v gave %v", r, out)
		}
	}
	if _, err := Combine(named[Krum], numbers(3e38, -3e38)); !errors.Is(err, ErrUpdates) {
		t.Errorf("updates that cannot be measured: %v", err)
	}
	if _, ok := ByName("vote", 0); ok || Known("vote") {
		t.Error("a rule that nobody knows was found")
	}
}

func BenchmarkRules(b *testing.B) {
	const size = 1 << 18
	for _, n := range []int{4, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			u := random(n, size, 1)
			for _, r := range rules {
				b.Run(r.name, func(b *testing.B) {
					b.SetBytes(int64(4 * size * n))
					for b.Loop() {
						combine(b, r.Rule, u)
					}
				})
			}
		})
	}
}
