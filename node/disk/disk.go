// Package disk computes how much of a file system a process may fill: its free space, and the share that its owner
// gives.
//
// It measures and computes; it does not enforce a share.
package disk

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Share is the part of a disk that its owner gives: a number of bytes, or a percentage of the free space. It is a
// flag's value.
type Share struct {
	Bytes   int64
	Percent int // if Bytes is 0
}

// units of sizes, the longer names first.
var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
	{"TB", 1e12}}

// Set reads a share, such as 50%, 20GiB or 500MB.
func (s *Share) Set(text string) error {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 100 {
			return fmt.Errorf("a percentage is from 1%% to 100%%")
		}
		*s = Share{Percent: n}
		return nil
	}
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(x > 0 && x*float64(u.bytes) < math.MaxInt64/2) || int64(x*float64(u.bytes)) == 0 {
				return fmt.Errorf("a size is a number above 0 and a unit")
			}
			*s = Share{Bytes: int64(x * float64(u.bytes))}
			return nil
		}
	}
	return fmt.Errorf("use a size such as 20GiB or 500MB, or a part of the free disk such as 50%%")
}

// String is what Set reads.
func (s *Share) String() string {
	switch {
	case s.Bytes == 0 && s.Percent == 0:
		return ""
	case s.Bytes == 0:
		return fmt.Sprintf("%d%%", s.Percent)
	}
	for i := 3; i >= 0; i-- {
		if u := units[i]; s.Bytes%u.bytes == 0 {
			return fmt.Sprintf("%d%s", s.Bytes/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%gkB", float64(s.Bytes)/1e3)
}

// Words say what a share is of: 20GiB, or 50% of the free disk.
func (s *Share) Words() string {
	if s.Bytes == 0 {
		return s.String() + " of the free disk"
	}
	return s.String()
}

// Type names the kind of value in the help of a flag.
func (s *Share) Type() string { return "size" }

// Of is how many bytes that are in the file system of a folder, where what is given takes so many already. They count
// as free, so that the answer is the same after a restart. Where free space is not known a percentage gives everything.
func (s *Share) Of(dir string, taken int64) int64 {
	if s.Bytes > 0 {
		return s.Bytes
	}
	free, ok := Free(dir)
	if !ok {
		return math.MaxInt64 / 2
	}
	return max(1, (free+taken)/100*int64(s.Percent))
}
