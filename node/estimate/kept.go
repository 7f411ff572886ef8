package estimate

import (
	"errors"
	"io/fs"
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
}

// Came compares the estimate with the income since, in uzen.
func (k Kept) Came(earned uint64, now time.Time) Came {
	days := max(now.Sub(k.At), time.Minute).Hours() / 24
	return Came{k, days, uint64(float64(earned) / days)}
}
