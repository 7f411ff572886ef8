package sale

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

// openPart is the part of the leaves that an opening shows to everyone at most: one of that number.
const openPart = 10

// enough refuses an opening of too many leaves, which gives a good part of the files away.
func enough(c sale.Content, leaves int) error {
	if uint64(leaves)*openPart > c.Leaves {
		return &fault.Error{Code: fault.BadFolder,
			What: fmt.Sprintf("a proof opens %d leaves to everyone, and the files have %d", leaves, c.Leaves),
			Fix: fmt.Sprintf("sell without a proof, or with the keys of a setup for at most %d leaves",
				c.Leaves/openPart)}
	}
	return nil
}

// scheme is that of files which are to be opened by an opener; nil: they are not.
func scheme(o *circuit.Opener) sale.Scheme {
	if o == nil {
		return sale.OneKey
	}
	return sale.LeafKeys
}

// Open opens the drawn leaves of the offer, once they are drawn, for buyers that ask for a proof. It does nothing if
// leaves are open already: a node that says each time that others were drawn would learn them all.
func (s *Seller) Open(o sale.Offer, with *circuit.Opener) error {
	public := filepath.Join(s.dir, dirPublic)
	had, err := os.ReadFile(filepath.Join(public, goods.FileOpening))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.OnDisk(err)
	}
	if _, err := opening.Decode(had); err == nil {
		return nil
	}
	c := s.secrets.Content
	if c != o.Terms.Content || c.Scheme != sale.LeafKeys || o.Draws() {
		return &fault.Error{Code: fault.OtherOffer, What: fmt.Sprintf("offer %d has no drawn leaves of these files", o.ID),
			Fix: "sell the files of another folder with a proof, or wait for the next block"}
	}
	if err := enough(c, with.Leaves()); err != nil {
		return err
	}
	key, err := opening.ParseKey(s.secrets.Key)
	if err != nil {
		return err
	}
	made, err := with.Open(key, o.Drawn(with.Leaves()))
	if err != nil {
		return err
	}
	return goods.WriteOpening(public, made)
}

// serveOpening serves the opened leaves, if there are any.
func (s *Seller) serveOpening(w http.ResponseWriter, r *http.Request) {
	data, err := os.ReadFile(filepath.Join(s.dir, dirPublic, goods.FileOpening))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+canon.Leaf(data).String()+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
