package discovery

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
)

// TestAnnouncer announces many blobs, a few at a time, each of them once in half a day, those that fail again sooner,
// and those that are not kept any more no more.
func TestAnnouncer(t *testing.T) {
	var asked []blob.CID
	down := errors.New("nobody is there")
	failed := error(nil)
	a := NewAnnouncer(func(_ context.Context, c blob.CID) error {
		asked = append(asked, c)
		return failed
	})
	var kept []blob.CID
	for i := range announceBatch + 3 {
		kept = append(kept, blob.Of([]byte{byte(i)}))
	}
	now := time.Unix(1000, 0)
	turn := func(name string, after time.Duration, wantErr error, want ...blob.CID) {
		t.Helper()
		now, asked = now.Add(after), nil
		if err := a.Announce(t.Context(), kept, now); !errors.Is(err, wantErr) || !slices.Equal(asked, want) {
			t.Errorf("%s: announced %v, %v; want %v, %v", name, asked, err, want, wantErr)
		}
	}
	failed = down
	turn("nobody there", 0, down, kept[0])
	failed = nil
	turn("the next", time.Second, nil, kept[1:announceBatch+1]...)
	turn("the rest", time.Second, nil, kept[announceBatch+1:]...)
	turn("nothing", time.Second, nil)
	turn("again after a failure", announceRetry, nil, kept[0])
	kept = kept[:2]
	turn("half a day later", announceAgain, nil, kept[0], kept[1])
	if len(a.next) != 2 {
		t.Errorf("%d blobs are remembered", len(a.next))
	}
}
