// Package spelling guesses which of some words was meant by one that is none of them. It knows no words itself.
package spelling

import "strings"

// Nearest returns the candidate that a typist most likely meant, or "": an edit distance of at most a third of the
// length, and at most 3. Ties go to the first candidate.
func Nearest(word string, candidates []string) string {
	best, bestAt := "", 1+min(3, (len(word)+2)/3)
	for _, c := range candidates {
		if at := distance(strings.ToLower(word), strings.ToLower(c)); at < bestAt {
			best, bestAt = c, at
		}
	}
	return best
}

// distance is the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
func distance(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
