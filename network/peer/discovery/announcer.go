package discovery

import (
	"context"
	"maps"
	"time"

	"github.com/starling-network/starling/network/blob"
)

// How an Announcer goes about it.
const (
	announceAgain = 12 * time.Hour // well before what was announced is forgotten
	announceRetry = 5 * time.Minute
	announceBatch = 16               // blobs of one call
	announceMost  = 1 << 14          // blobs that are announced at all
	announceTime  = 10 * time.Second // of one blob
)

// Announcer keeps announced what a host has: every blob once, and again before it is forgotten.
type Announcer struct {
	provide func(ctx context.Context, c blob.CID) error
	next    map[blob.CID]time.Time // when it is due
}

// NewAnnouncer returns an announcer that has announced nothing yet; provide announces one blob.
func NewAnnouncer(provide func(context.Context, blob.CID) error) *Announcer {
	return &Announcer{provide: provide, next: map[blob.CID]time.Time{}}
}

// Announce announces what is due of the blobs that the host keeps at a time by the caller's clock: a few of them, so
// that it ends soon, in the order given. It is called again and again. Blobs that are not given any more are forgotten.
// The error is that of the first blob that could not be announced, which ends the call; it is tried again later.
func (a *Announcer) Announce(ctx context.Context, kept []blob.CID, now time.Time) error {
	kept = kept[:min(len(kept), announceMost)]
	given := make(map[blob.CID]bool, len(kept))
	for _, c := range kept {
		given[c] = true
	}
	maps.DeleteFunc(a.next, func(c blob.CID, _ time.Time) bool { return !given[c] })
	done := 0
	for _, c := range kept {
		if now.Before(a.next[c]) {
			continue
		}
		if done++; done > announceBatch {
			return nil
		}
		trying, cancel := context.WithTimeout(ctx, announceTime)
		err := a.provide(trying, c)
		cancel()
		if err != nil {
			a.next[c] = now.Add(announceRetry)
			return err
		}
		a.next[c] = now.Add(announceAgain)
	}
	return nil
}
