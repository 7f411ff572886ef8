package estimate

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/node/folder"
)

// File is the name of the latest estimate in the folder of a worker.
const File = "estimate.json"

// Kept is an estimate that is kept, to be compared with the income that follows.
type Kept struct {
	At     time.Time `json:"at"`
	Height int64     `json:"height"`
	Income Range     `json:"day"`
}

// Keep writes an estimate into the folder of a worker, in place of an earlier one.
func Keep(dir string, r *Report, at time.Time) error {
	return folder.WriteJSON(filepath.Join(dir, File), Kept{at.UTC(), r.Height, r.Income})
}

// Read reads the estimate of a folder; nil: there is none.
func Read(dir string) (*Kept, error) {
	var k Kept
	err := folder.ReadJSON(filepath.Join(dir, File), &k)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &k, err
}

// Came is the income since an estimate, in uzen a day.
type Came struct {
	Kept
	Days   float64 `json:"days"`       // since then
	Earned uint64  `json:"earned_day"` // uzen a day
	Since  *Since  `json:"since_first_pay,omitempty"`
}

// Since is the income after the first pay that followed an estimate. The time in which a machine is registered,
// measured and seated, and its first units become final, is left out: an estimate is of the days after that.
type Since struct {
	Days   float64 `json:"days"`       // since the first pay
	Earned uint64  `json:"earned_day"` // uzen a day, without the first pay
	Off    float64 `json:"off"`        // the median of the estimate over it, less 1
}

// Pay is an amount that an account received at a height, in uzen.
type Pay struct {
	Height int64
	Amount uint64
}

// leastPays is how many heights with pay after the first make the income since it.
const leastPays = 2

// Came compares the estimate with the pay since, up to a height at which it is now. Heights before it are taken to be
// spread over the time evenly.
func (k Kept) Came(pays []Pay, height int64, now time.Time) Came {
	days := max(now.Sub(k.At), time.Minute).Hours() / 24
	var all, later uint64
	first, heights := int64(math.MaxInt64), map[int64]bool{}
	for _, p := range pays {
		if p.Height > k.Height && p.Height <= height && p.Amount > 0 {
			all += p.Amount
			first, heights[p.Height] = min(first, p.Height), true
		}
	}
	c := Came{k, days, uint64(float64(all) / days), nil}
	if len(heights) <= leastPays {
		return c
	}
	for _, p := range pays {
		if p.Height > first && p.Height <= height {
			later += p.Amount
		}
	}
	s := Since{Days: days * float64(height-first) / float64(height-k.Height)}
	s.Earned = uint64(float64(later) / s.Days)
	s.Off = float64(k.Income.Median)/max(1, float64(s.Earned)) - 1
	c.Since = &s
	return c
}
