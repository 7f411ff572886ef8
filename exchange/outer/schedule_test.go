package outer

import "testing"

func TestScheduleByHand(t *testing.T) {
	s := Schedule{Every: 6, Fragments: 3, Delay: 1}
	sends := map[int]int{2: 1, 4: 2, 6: 0, 8: 1, 10: 2, 12: 0}
	for step := range 13 {
		f, ok := s.Sends(step)
		if want, due := sends[step]; ok != due || f != want {
			t.Errorf("step %d sends %d %v, want %d %v", step, f, ok, want, due)
		}
		f, ok = s.Applies(step)
		if want, due := sends[step-1]; ok != due || f != want {
			t.Errorf("step %d applies %d %v, want %d %v", step, f, ok, want, due)
		}
	}
	for layer, want := range []int{0, 1, 2, 0, 1} {
		if got := s.Fragment(layer); got != want {
			t.Errorf("layer %d is in fragment %d, want %d", layer, got, want)
		}
	}
}

// Every fragment is sent once in Every steps, applied before it is sent again, and never two are under way: replicas that
// join at any step exchange in the order of all others.
func TestOneFragmentIsUnderWay(t *testing.T) {
	for _, s := range []Schedule{{20, 1, 0}, {20, 1, 20}, {20, 4, 5}, {30, 3, 2}, {8, 8, 1}, {1, 1, 0}} {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		flying := -1
		for step := 1; step <= 4*s.Every; step++ {
			sent, sends := s.Sends(step)
			applied, applies := s.Applies(step)
			if s.Delay > 0 && applies {
				if applied != flying {
					t.Errorf("%+v, step %d: applies %d, under way is %d", s, step, applied, flying)
				}
				flying = -1
			}
			if sends {
				if flying >= 0 {
					t.Errorf("%+v, step %d: sends %d while %d is under way", s, step, sent, flying)
				}
				if flying = sent; s.Delay == 0 {
					flying = -1
				}
			}
			if again, _ := s.Sends(step + s.Every); sends && again != sent {
				t.Errorf("%+v: fragment %d is not sent again", s, sent)
			}
		}
	}
}

func TestSchedulesThatNobodyCanKeepTo(t *testing.T) {
	for _, s := range []Schedule{{}, {10, 3, 0}, {10, 0, 0}, {0, 1, 0}, {10, 2, 6}, {10, 2, -1}, {3, 6, 0}} {
		if s.Check() == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}
