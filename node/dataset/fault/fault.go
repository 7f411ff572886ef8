// Package fault lists the faults of the files of a data set, and groups those with the same reason. It reads no files.
package fault

import (
	"fmt"
	"strconv"
)

// Fault is something for which a job with the file would be refused.
type Fault struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0: the file as a whole
	Why  string `json:"why"`
}

// Group is faults of a file that have the same reason.
type Group struct {
	Fault     // of the first line
	Last  int // line
	Count int // of the lines
}

// Lines names the lines, such as 7, 7-12, or 7 to 90 (14 lines). The fault of a file as a whole has none.
func (g Group) Lines() string {
	switch {
	case g.Line == 0:
		return ""
	case g.Count == 1:
		return strconv.Itoa(g.Line)
	case g.Last-g.Line+1 == g.Count:
		return fmt.Sprintf("%d-%d", g.Line, g.Last)
	}
	return fmt.Sprintf("%d to %d (%d lines)", g.Line, g.Last, g.Count)
}

// Grouped puts faults together, in the order of the first of each.
func Grouped(faults []Fault) (groups []Group) {
	index := map[Fault]int{}
	for _, f := range faults {
		kind := Fault{File: f.File, Why: f.Why}
		if i, ok := index[kind]; ok && f.Line > 0 {
			groups[i].Last = f.Line
			groups[i].Count++
			continue
		}
		index[kind] = len(groups)
		groups = append(groups, Group{f, f.Line, 1})
	}
	return groups
}
