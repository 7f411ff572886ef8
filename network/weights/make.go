package weights

import (
	"context"
	"maps"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
)

// maxTries is how often a patch between versions that are held is made: again after the store has deleted it, and never
// after it could not be made or stored.
const maxTries = 3

// begin has a patch made in the background if a source holds both versions, and reports whether it will be here. One
// patch is made at a time.
func (x *Exchange) begin(w way) bool {
	from, to, ok := x.held(w)
	if !ok {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closed, x.tried[w] >= maxTries:
		return false
	case x.making:
		return true
	}
	x.making = true
	x.tried[w]++
	x.working.Go(func() {
		made := x.make(x.ctx, from, to)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.making = false
		if !made {
			x.tried[w] = maxTries
		}
	})
	return true
}

// held are two versions that a source holds, the second of a later round. Tries of versions that no source holds are
// forgotten.
func (x *Exchange) held(w way) (from, to patch.Version, ok bool) {
	x.mu.Lock()
	sources := x.sources
	x.mu.Unlock()
	all := map[canon.Digest]bool{}
	for _, s := range sources {
		has, wants := false, false
		var a, b patch.Version
		for _, v := range s.Versions() {
			all[v.Name.Root] = true
			switch v.Name.Root {
			case w.from:
				a, has = v, true
			case w.to:
				b, wants = v, true
			}
		}
		if has && wants && a.Name.Round < b.Name.Round {
			from, to, ok = a, b, true
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.tried, func(w way, _ int) bool { return !all[w.from] || !all[w.to] })
	return from, to, ok
}

// make makes a patch, and reports whether all of it is in the store then. Else nothing of it is left there.
func (x *Exchange) make(ctx context.Context, from, to patch.Version) (ok bool) {
	var added []blob.CID
	defer func() {
		if !ok {
			x.discard(ctx, added)
		}
	}()
	put := func(data []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := blob.Of(data)
		if has, err := x.store.Has(ctx, c); err != nil || has {
			return err
		}
		added = append(added, c)
		_, err := x.store.Put(ctx, data)
		return err
	}
	h, err := patch.Make(from, to, put)
	if err != nil {
		return false
	}
	b := h.Encode()
	if len(b) > patch.MaxHeadBytes || put(b) != nil || !x.stored(ctx, blob.Of(b)) {
		return false
	}
	x.note(way{from.Name.Root, to.Name.Root}, blob.Of(b), int64(len(b))+h.Bytes(), true)
	return true
}
