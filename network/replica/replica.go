// Package replica decides which members of a group keep which blobs, so that every blob has several holders while
// members come and go. Every process that knows the members computes the same answer by rendezvous hashing (Thaler and
// Ravishankar 1998): no process assigns blobs, and when a member leaves, only its blobs move.
//
// It moves no bytes, and knows neither who the members are nor which blobs are needed: the caller says both.
package replica

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/network/blob"
)

// Factor is how many holders a blob has, unless a caller wants another number.
const Factor = 3

// Holders returns the n members that keep a blob, the first to be asked first; all of them if there are fewer. The
// order of members does not matter, and duplicates count once.
func Holders(c blob.CID, members []string, n int) []string {
	type ranked struct {
		member string
		score  [sha256.Size]byte
	}
	list := make([]ranked, len(members))
	for i, m := range members {
		h := sha256.New()
		h.Write(c.Hash())
		h.Write([]byte(m))
		list[i].member = m
		h.Sum(list[i].score[:0])
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(-bytes.Compare(a.score[:], b.score[:]), cmp.Compare(a.member, b.member))
	})
	list = slices.CompactFunc(list, func(a, b ranked) bool { return a.member == b.member })
	out := make([]string, min(n, len(list)))
	for i := range out {
		out[i] = list[i].member
	}
	return out
}

// Duties are the blobs that a member keeps, in the order given.
func Duties(self string, blobs []blob.CID, members []string, n int) (mine []blob.CID) {
	for _, c := range blobs {
		if slices.Contains(Holders(c, members, n), self) {
			mine = append(mine, c)
		}
	}
	return mine
}

// Nearest are Duties in the order in which a member keeps them that has no room for all: those first of which it is the
// first holder, then those of which it is the second, and so on.
func Nearest(self string, blobs []blob.CID, members []string, n int) []blob.CID {
	places := make([][]blob.CID, n)
	for _, c := range blobs {
		if at := slices.Index(Holders(c, members, n), self); at >= 0 {
			places[at] = append(places[at], c)
		}
	}
	return slices.Concat(places...)
}

// Fetcher gets blobs from others; a peer.Host.
type Fetcher interface {
	Ensure(ctx context.Context, c blob.CID, from []string) error
}

// Keep fetches the missing blobs of a member's duties from the other members' addresses. It continues after a blob
// that no member has, and returns the errors of all of them.
func Keep(ctx context.Context, f Fetcher, duties []blob.CID, from []string) error {
	var errs []error
	for _, c := range duties {
		if err := f.Ensure(ctx, c, from); err != nil {
			errs = append(errs, fmt.Errorf("replica: %s: %w", c, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}
