package sale

import (
	"cmp"
	"context"
	"crypto/ecdh"
	"crypto/hpke"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

const (
	fileSecrets = "secrets.json"
	dirPublic   = "public"
	// margin is the number of blocks before the end of an order in which a seller does not answer any more: an answer
	// that the network takes too late gives the buyer the key, and the price back. It is a tenth of the window if that
	// is more.
	margin = 10
)

// secrets is the file of a seller that only its owner can read.
type secrets struct {
	Goods   goods.Source `json:"goods"`
	Content sale.Content `json:"content"`
	Key     []byte       `json:"key"`             // of the files
	Seal    []byte       `json:"seal"`            // private key of masks
	Offer   uint64       `json:"offer,omitempty"` // on the network; 0: none yet
}

// Seller sells the files of one offer. Its folder has its secrets and the encrypted files. One process at a time uses
// it.
type Seller struct {
	dir     string
	unlock  func() error
	secrets secrets
	seal    hpke.PrivateKey
	refused map[uint64]bool // orders whose reason is in the log
}

// Prepare encrypts files with a new key into the folder of a seller, and opens it. If the folder has them already, it
// opens it. A call after one that was cut off starts again, with another key. With an opener each leaf has a key of its
// own, so that it can open some; it may be nil. progress gets bytes; it may be nil.
func Prepare(ctx context.Context, g goods.Source, dir string, with *circuit.Opener,
	progress func(done, total int64)) (*Seller, error) {
	path, err := filepath.Abs(g.Folder)
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	g.Folder = path
	if err := apart(g.Folder, dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, fileSecrets)); err == nil {
		s, err := OpenSeller(dir)
		if err == nil && s.secrets.Goods.Folder != g.Folder {
			return nil, errors.Join(s.Close(), &fault.Error{Code: fault.Exists,
				What: dir + " sells the files of " + s.secrets.Goods.Folder, Fix: "give another folder for this sale"})
		}
		if err == nil && with != nil && s.secrets.Content.Scheme != sale.LeafKeys {
			return nil, errors.Join(s.Close(), &fault.Error{Code: fault.Exists,
				What: dir + " sells these files without a proof",
				Fix:  "continue without --proof, or withdraw the offer and move the folder away to begin another"})
		}
		return s, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.OnDisk(err)
	}
	unlock, err := folder.Lock(dir)
	if err != nil {
		return nil, err
	}
	err = prepare(ctx, g, dir, with, progress)
	if err := errors.Join(err, unlock()); err != nil {
		return nil, fault.OnDisk(err)
	}
	return OpenSeller(dir)
}

// apart refuses a folder of a seller inside the folder that is sold, or around it.
func apart(sold, dir string) error {
	to, err := filepath.Abs(dir)
	if err != nil {
		return fault.OnDisk(err)
	}
	in, failed := filepath.Rel(sold, to)
	around, err := filepath.Rel(to, sold)
	if failed == nil && filepath.IsLocal(in) || err == nil && filepath.IsLocal(around) {
		return &fault.Error{Code: fault.BadFolder, What: dir + " and the files that are sold are not apart",
			Fix: "give a folder that is not inside the other"}
	}
	return nil
}

// prepare makes the files of a seller. The secrets are the last: without them nothing of the folder was offered.
func prepare(ctx context.Context, g goods.Source, dir string, with *circuit.Opener,
	progress func(done, total int64)) error {
	public := filepath.Join(dir, dirPublic)
	if err := hasOnly(dir, dirPublic, fileSecrets+".part"); err != nil {
		return err
	}
	if err := hasOnly(public, goods.FileIndex, goods.FileIndex+".part", goods.FileSealed,
		goods.FileSealed+".part"); err != nil {
		return err
	}
	if err := os.RemoveAll(public); err != nil { // an earlier call was cut off
		return err
	}
	key, err := opening.NewKey()
	if err != nil {
		return err
	}
	s := secrets{Goods: g, Key: key.Bytes()} // also of files with one key: it has 253 bits
	private, err := NewSealKey()
	if err != nil {
		return err
	}
	if s.Seal, err = private.Bytes(); err != nil {
		return err
	}
	if s.Content, err = goods.Seal(ctx, g, public, scheme(with), s.Key, progress); err != nil {
		return err
	}
	if with != nil {
		if err := enough(s.Content, with.Leaves()); err != nil {
			return err
		}
	}
	return folder.WriteSecretJSON(filepath.Join(dir, fileSecrets), s)
}

// OpenSeller opens the folder of a seller. The caller closes it.
func OpenSeller(dir string) (*Seller, error) {
	s := &Seller{dir: dir, refused: map[uint64]bool{}}
	err := folder.ReadJSON(filepath.Join(dir, fileSecrets), &s.secrets)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fault.Error{Code: fault.BadFolder, What: dir + " is no folder of a seller", Err: err,
			Fix: "give the folder that the offer was made with"}
	}
	if err == nil {
		s.seal, err = hpke.DHKEM(ecdh.X25519()).NewPrivateKey(s.secrets.Seal)
	}
	if err == nil && len(s.secrets.Key) != sale.KeyBytes {
		err = fmt.Errorf("a key of %d bytes, wanted %d", len(s.secrets.Key), sale.KeyBytes)
	}
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	if s.unlock, err = folder.Lock(dir); err != nil {
		return nil, err
	}
	return s, nil
}

// Close lets another process use the folder.
func (s *Seller) Close() error { return s.unlock() }

// Terms returns terms with the content of the seller and its public key of masks. The caller gives the rest.
func (s *Seller) Terms(t sale.Terms) sale.Terms {
	t.Content, t.Seal = s.secrets.Content, s.seal.PublicKey().Bytes()
	return t
}

// Offer is the number of the offer that Offered wrote; 0: none.
func (s *Seller) Offer() uint64 { return s.secrets.Offer }

// Offered records the offer on the network. An offer of other files or with another key of masks is refused.
func (s *Seller) Offered(o sale.Offer) error {
	if o.Terms.Content != s.secrets.Content || string(o.Terms.Seal) != string(s.seal.PublicKey().Bytes()) {
		return &fault.Error{Code: fault.OtherOffer, What: fmt.Sprintf("offer %d is not of the files of %s", o.ID, s.dir),
			Fix: "give the number of the offer that was made with this folder"}
	}
	next := s.secrets
	next.Offer = o.ID
	if err := folder.WriteSecretJSON(filepath.Join(s.dir, fileSecrets), next); err != nil {
		return fault.OnDisk(err)
	}
	s.secrets = next
	return nil
}

// Handler serves the index, the encrypted file and what is opened of it, in ranges where asked for, and nothing else.
func (s *Seller) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /"+goods.FileOpening, s.serveOpening)
	for name, tag := range map[string]string{goods.FileIndex: s.secrets.Content.Index.String(),
		goods.FileSealed: s.secrets.Content.Sealed.String()} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			f, err := os.Open(filepath.Join(s.dir, dirPublic, name))
			if err != nil {
				http.Error(w, "the file cannot be read", http.StatusInternalServerError)
				return
			}
			defer f.Close()
			w.Header().Set("ETag", `"`+tag+`"`)
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeContent(w, r, "", time.Time{}, f)
		})
	}
	return mux
}

// Run answers the orders of the offer until it is over. next returns the height of the next block when it is there.
// An order that it cannot answer, such as one whose box does not open, it rejects, so that orders without a mask do not
// close an offer to others; the log has the reason.
func (s *Seller) Run(ctx context.Context, m SellerMarket, next func(ctx context.Context) (int64, error),
	log *slog.Logger) error {
	if s.secrets.Offer == 0 {
		return &fault.Error{Code: fault.OtherOffer, What: s.dir + " has no offer yet", Fix: "offer the files first"}
	}
	for {
		height, err := next(ctx)
		if err != nil {
			return err
		}
		over, err := s.answer(ctx, m, height, log)
		if err != nil {
			log.Warn("the orders of the offer are not known at this block", "offer", s.secrets.Offer, "error", err)
		}
		if over {
			return nil
		}
	}
}

// answer answers the orders that are paid at a height.
func (s *Seller) answer(ctx context.Context, m SellerMarket, height int64, log *slog.Logger) (over bool, _ error) {
	o, err := m.Offer(ctx, s.secrets.Offer)
	if err != nil || o.Open == 0 {
		return err == nil && o.Over(), err
	}
	if o.Terms.Content != s.secrets.Content {
		return false, fmt.Errorf("sale: offer %d is not of the files of %s", o.ID, s.dir)
	}
	orders, err := m.Orders(ctx, o.ID)
	if err != nil {
		return false, err
	}
	slices.SortStableFunc(orders, func(a, b sale.Order) int { return cmp.Compare(a.Until, b.Until) })
	var refused []uint64
	for _, order := range orders {
		if order.Phase != sale.Paid {
			continue
		}
		answer, err := s.reply(o, order, height)
		if err != nil {
			if !s.refused[order.ID] {
				s.refused[order.ID] = true
				log.Warn("an order is rejected", "order", order.ID, "buyer", order.Buyer, "reason", err)
			}
			refused = append(refused, order.ID)
			continue
		}
		if err := m.Answer(ctx, order.ID, answer); err != nil {
			log.Warn("an answer failed; the next block tries again", "order", order.ID, "error", err)
		} else {
			log.Info("an order is answered", "order", order.ID, "buyer", order.Buyer)
		}
		return false, nil // one in a block: the next one is judged by its own height
	}
	if len(refused) > 0 {
		if err := m.Reject(ctx, refused[:min(len(refused), sale.MaxRejected)]); err != nil {
			log.Warn("a rejection failed; the next block tries again", "error", err)
		}
	}
	return false, nil
}

// reply is the answer to an order, or the reason why it gets none.
func (s *Seller) reply(o sale.Offer, order sale.Order, height int64) ([]byte, error) {
	switch {
	case o.Lied:
		return nil, sale.ErrClosed
	case order.Offer != s.secrets.Offer:
		return nil, fmt.Errorf("it is of offer %d", order.Offer)
	case order.Until-height < max(margin, int64(o.Terms.Answer)/10):
		return nil, fmt.Errorf("it ends at block %d, and an answer after block %d may be too late", order.Until, height)
	}
	mask, err := OpenMask(s.seal, order.Offer, order.Buyer, order.Box)
	if err != nil {
		return nil, err
	}
	if sale.MaskDigest(mask) != order.Mask {
		return nil, errors.New("its mask is not that of its digest")
	}
	return sale.Unmask(s.secrets.Key, mask), nil
}
