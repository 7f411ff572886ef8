package digits

import "testing"

// A seed and a number draw the same image again, and other numbers draw others.
func TestDrawnAgain(t *testing.T) {
	a, b, c := Draw(1, 2, 3), Draw(1, 2, 3), Draw(1, 3, 3)
	if a != b || a == c || a.Digit != 3 {
		t.Errorf("%v %v %v", a, b, c)
	}
	for d := range Classes {
		dark := 0
		for _, p := range Draw(9, d, d).Pixels {
			if p < 0 || p > 255 {
				t.Fatalf("pixel %d", p)
			}
			if p > 100 {
				dark++
			}
		}
		if dark < 8 || dark > 40 {
			t.Errorf("digit %d has %d dark pixels", d, dark)
		}
	}
}
