package clock

import (
	"errors"
	"testing"
	"time"
)

func TestValidatorNeedsTheTime(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for behind, slow := range map[time.Duration]bool{0: false, 59 * time.Second: false, 61 * time.Second: true,
		time.Hour: true, -time.Hour: false} {
		if err := OnTime(now, now.Add(behind)); errors.Is(err, ErrClock) != slow {
			t.Errorf("%v behind: %v", behind, err)
		}
	}
	if err := OnTime(now, time.Time{}); err != nil {
		t.Errorf("before the first block: %v", err)
	}
}
