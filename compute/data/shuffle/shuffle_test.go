package shuffle

import "testing"

func TestOrderIsABijection(t *testing.T) {
	sizes := []uint64{65536, 65537, 100003}
	for n := uint64(1); n <= 300; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		for epoch := range uint64(3) {
			p := New(42, epoch, n)
			seen := make([]bool, n)
			for i := range n {
				w := p.At(i)
				if w >= n || seen[w] {
					t.Fatalf("n=%d epoch %d: %d goes to %d, out of range or taken", n, epoch, i, w)
				}
				seen[w] = true
			}
		}
	}
}

func TestOrderOfHugeDomains(t *testing.T) {
	for _, n := range []uint64{1 << 40, 1<<62 - 1, 1 << 62} {
		p := New(1, 2, n)
		seen := map[uint64]bool{}
		for i := range uint64(1000) {
			w := p.At(n - 1 - i)
			if w >= n || seen[w] {
				t.Fatalf("n=%d: %d goes to %d, out of range or taken", n, i, w)
			}
			seen[w] = true
		}
	}
}

// Epochs, seeds and neighbours must look unrelated. The bounds are five standard deviations of a random order.
func TestOrderSpreads(t *testing.T) {
	const n = 10007
	a, b, c := New(1, 0, n), New(1, 1, n), New(2, 0, n)
	same, ascending, fixed := 0, 0, 0
	for i := range uint64(n) {
		if a.At(i) == b.At(i) || a.At(i) == c.At(i) {
			same++
		}
		if a.At(i) == i {
			fixed++
		}
		if i > 0 && a.At(i-1) < a.At(i) {
			ascending++
		}
	}
	if same > 10 || fixed > 7 || ascending < n/2-150 || ascending > n/2+150 {
		t.Errorf("%d places shared between orders, %d fixed, %d ascents of %d", same, fixed, ascending, n)
	}
	chi := 0.0 // where the first window of an epoch lies, over many epochs: 16 cells, 15 degrees of freedom
	var cells [16]float64
	for epoch := range uint64(16000) {
		p := New(7, epoch, 160)
		cells[p.At(0)/10]++
	}
	for _, k := range cells {
		chi += (k - 1000) * (k - 1000) / 1000
	}
	if chi > 42 { // 1 in 5000
		t.Errorf("chi-squared %.1f of the first window", chi)
	}
}

// The order is part of the result of every run: these figures may not change without a new version of the format.
func TestOrderIsFixed(t *testing.T) {
	for _, c := range []struct {
		seed, epoch, n uint64
		want           [5]uint64
	}{
		{0, 0, 10, [5]uint64{8, 1, 6, 5, 4}},
		{1, 0, 1000, [5]uint64{87, 941, 152, 564, 807}},
		{1, 1, 1000, [5]uint64{306, 652, 500, 71, 337}},
		{1 << 63, 9, 1 << 40, [5]uint64{176617150597, 527255454788, 110180372055, 573415602463, 1013675824728}},
	} {
		p := New(c.seed, c.epoch, c.n)
		var got [5]uint64
		for i := range got {
			got[i] = p.At(uint64(i))
		}
		if got != c.want {
			t.Errorf("seed %d epoch %d of %d: %d, want %d", c.seed, c.epoch, c.n, got, c.want)
		}
	}
}
