package sale

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/protocol/sale"
)

func TestHonestSale(t *testing.T) {
	x := newSale(t, nil)
	for i, name := range []string{"buyer", "other"} {
		out, err := x.buyer(t, name).Buy(t.Context())
		if err != nil || out.Kind != Bought || out.Order != uint64(i+1) || out.Amount != 0 {
			t.Fatalf("%s: %+v, %v", name, out, err)
		}
		x.equal(t, out.Folder)
	}
	x.end()
	x.check(t, "two purchases", map[string]int64{"buyer": start - price, "other": start - price,
		"seller": start - bond + 2*price})
}

// change gives a seller another index, which it commits to like an honest one.
func change(t *testing.T, s *Seller, f func(x *goods.Index)) {
	t.Helper()
	public := filepath.Join(s.dir, dirPublic)
	x, err := goods.Examine(public, s.secrets.Content)
	if err != nil {
		t.Fatal(err)
	}
	f(x)
	data := canon.MustMarshal(x)
	var digests []canon.Digest
	for d := x.Digests; len(d) > 0; d = d[32:] {
		digests = append(digests, canon.Digest(d[:32]))
	}
	s.secrets.Content.Plain = canon.NewTree(digests).Root()
	s.secrets.Content.Index = canon.Sum("starling/sale/index/1", data)
	if err := os.WriteFile(filepath.Join(public, goods.FileIndex), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A seller that cheats never keeps the price, and the buyer loses no coins.
func TestSellerCheats(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, s *Seller) // the offer
		after  func(x *sold)
		want   Kind
		leaf   int64
		code   string
		gain   int64 // of the buyer
	}{
		"a bad leaf": {want: Lied, leaf: 3, gain: bond / 2, before: func(t *testing.T, s *Seller) {
			change(t, s, func(x *goods.Index) { x.Digests[32*3] ^= 1 })
		}},
		"a key that was not committed": {want: Lied, leaf: -1, gain: bond / 2, after: func(x *sold) {
			x.seller.secrets.Key[0] ^= 1
		}},
		"another encrypted file than its root": {code: fault.Unreachable, before: func(_ *testing.T, s *Seller) {
			s.secrets.Content.Sealed[0] ^= 1
		}},
		"an index whose digests are not the root": {code: fault.Unreachable, before: func(_ *testing.T, s *Seller) {
			s.secrets.Content.Plain[0] ^= 1
		}},
		"no answer": {want: Unanswered, after: func(x *sold) { x.silent = true }},
		"too few bytes": {code: fault.Unreachable, after: func(x *sold) {
			x.serve = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("short")) })
		}},
		"other bytes": {code: fault.Unreachable, after: func(x *sold) { x.serve = tampered(x.serve) }},
		"endless bytes": {code: fault.Unreachable, after: func(x *sold) {
			x.serve = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSale(t, func(s *Seller) {
				if c.before != nil {
					c.before(t, s)
				}
			})
			if c.after != nil {
				c.after(x)
			}
			b := x.buyer(t, "buyer")
			out, err := b.Buy(t.Context())
			if code(err) != c.code || c.code == "" && (out.Kind != c.want || out.Leaf != c.leaf) {
				t.Fatalf("%+v, %v", out, err)
			}
			if c.want != "" && int64(out.Amount) != price+c.gain {
				t.Errorf("got back %d grains", out.Amount)
			}
			if _, err := os.Stat(b.To); err == nil {
				t.Error("a folder that is not what was sold")
			}
			if c.code != "" && len(x.orders) > 0 {
				t.Error("an order before the check")
			}
			x.end()
			x.check(t, name, map[string]int64{"buyer": start + c.gain, "seller": start - bond})
		})
	}
}

// tampered changes a byte of the encrypted file.
func tampered(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/"+goods.FileSealed {
			w = flip{w}
		}
		h.ServeHTTP(w, r)
	})
}

type flip struct{ http.ResponseWriter }

func (f flip) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 1
	return f.ResponseWriter.Write(b)
}

// With several locations, one that is right is enough, whatever the others serve.
func TestLocations(t *testing.T) {
	x := newSale(t, nil)
	honest := x.serve
	x.serve = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch base, rest, _ := strings.Cut(r.URL.Path[1:], "/"); base {
		case "gone":
			http.NotFound(w, r)
		case "other":
			http.StripPrefix("/other", tampered(honest)).ServeHTTP(w, r)
		case "right":
			r.URL.Path = "/" + rest
			honest.ServeHTTP(w, r)
		}
	})
	at := x.web.URL
	x.offers[0].Terms.Locations = []string{"ipfs://x", "%", at + "/gone", at + "/other", at + "/right/"}
	b := x.buyer(t, "buyer")
	out, err := b.Buy(t.Context())
	if err != nil || out.Kind != Bought {
		t.Fatalf("%+v, %v", out, err)
	}
	x.equal(t, out.Folder)

	// The beginning of another file, with the tag of the right one, does not spoil the download.
	b = x.buyer(t, "other")
	x.offers[0].Terms.Locations = []string{at + "/right"}
	part := filepath.Join(b.Dir, goods.FileSealed+".part")
	if err := errors.Join(os.MkdirAll(b.Dir, 0o755),
		folder.WriteSecretJSON(filepath.Join(b.Dir, fileOrder), ticket{Offer: 1,
			Mask: make([]byte, sale.KeyBytes)}), os.WriteFile(part, make([]byte, 5000), 0o644),
		os.WriteFile(part+".tag", []byte(`"`+x.seller.secrets.Content.Sealed.String()+`"`), 0o644)); err != nil {
		t.Fatal(err)
	}
	if out, err := b.Buy(t.Context()); err != nil || out.Kind != Bought {
		t.Fatalf("%+v, %v", out, err)
	}
}

// mask draws a mask and its box.
func mask(t *testing.T, x *sold, buyer string) (mask, box []byte) {
	t.Helper()
	mask = make([]byte, sale.KeyBytes)
	_, _ = rand.Read(mask)
	box, err := BoxMask(x.offers[0].Terms.Seal, 1, buyer, mask)
	if err != nil {
		t.Fatal(err)
	}
	return mask, box
}

// A buyer that cheats gets no key without a payment, and no coins of the seller.
func TestBuyerCheats(t *testing.T) {
	ctx := t.Context()
	good := func(x *sold) sale.Evidence { // a leaf that is what was offered
		public := filepath.Join(x.seller.dir, dirPublic)
		index, err := goods.Examine(public, x.seller.secrets.Content)
		sealed, err2 := os.ReadFile(filepath.Join(public, goods.FileSealed))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		var plain, secret []canon.Digest
		for i := range len(index.Digests) / 32 {
			plain = append(plain, canon.Digest(index.Digests[32*i:][:32]))
		}
		at := uint64(0)
		for _, p := range index.Parts {
			for n := uint64(0); n < p.Bytes; n += sale.LeafBytes {
				size := min(sale.LeafBytes, p.Bytes-n)
				secret = append(secret, canon.Leaf(sealed[at:at+size]))
				at += size
			}
		}
		e := sale.Evidence{Index: 1, Leaf: sealed[700 : 700+sale.LeafBytes], Plain: plain[1]}
		e.Path, _ = canon.NewTree(plain).Proof(1)
		e.Sealed, _ = canon.NewTree(secret).Proof(1)
		return e
	}
	for name, c := range map[string]struct {
		place    func(x *sold, m []byte) (digest canon.Digest, box []byte)
		complain func(x *sold, m []byte) error
		refusal  error
	}{
		"a box with another mask": {place: func(x *sold, m []byte) (canon.Digest, []byte) {
			_, box := mask(t, x, "buyer")
			return sale.MaskDigest(m), box
		}},
		"the order of another": {place: func(x *sold, _ []byte) (canon.Digest, []byte) {
			m, box := mask(t, x, "other")
			return sale.MaskDigest(m), box
		}},
		"a box of noise": {place: func(_ *sold, m []byte) (canon.Digest, []byte) {
			return sale.MaskDigest(m), make([]byte, sale.MaskBoxBytes)
		}},
		"a complaint about a good leaf": {refusal: sale.ErrEvidence, complain: func(x *sold, m []byte) error {
			return account{x.market, "buyer"}.Complain(ctx, 1, m, good(x))
		}},
		"a complaint with a forged path": {refusal: sale.ErrEvidence, complain: func(x *sold, m []byte) error {
			e := good(x)
			e.Plain[0] ^= 1
			return account{x.market, "buyer"}.Complain(ctx, 1, m, e)
		}},
		"a complaint with a forged leaf": {refusal: sale.ErrEvidence, complain: func(x *sold, m []byte) error {
			e := good(x)
			e.Leaf[0] ^= 1
			return account{x.market, "buyer"}.Complain(ctx, 1, m, e)
		}},
		"a complaint with another mask": {refusal: sale.ErrEvidence, complain: func(x *sold, m []byte) error {
			m[0] ^= 1
			return account{x.market, "buyer"}.Complain(ctx, 1, m, sale.Evidence{})
		}},
		"a complaint after the window": {refusal: sale.ErrPhase, complain: func(x *sold, m []byte) error {
			x.end()
			return account{x.market, "buyer"}.Complain(ctx, 1, m, sale.Evidence{})
		}},
		"a complaint about the order of another": {refusal: sale.ErrParty, complain: func(x *sold, m []byte) error {
			return account{x.market, "other"}.Complain(ctx, 1, m, sale.Evidence{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newSale(t, nil)
			m, box := mask(t, x, "buyer")
			digest := sale.MaskDigest(m)
			if c.place != nil {
				digest, box = c.place(x, m)
			}
			if _, err := (account{x.market, "buyer"}).Place(ctx, 1, digest, box); err != nil {
				t.Fatal(err)
			}
			if err := x.next(ctx); err != nil {
				t.Fatal(err)
			}
			if c.place != nil {
				x.end()
				if x.orders[0].Phase != sale.Rejected || len(x.orders[0].Answer) > 0 {
					t.Errorf("%+v", x.orders[0])
				}
				x.check(t, name, map[string]int64{"buyer": start, "seller": start - bond})
				return
			}
			if err := c.complain(x, m); !errors.Is(err, c.refusal) {
				t.Errorf("%v", err)
			}
			x.end()
			x.check(t, name, map[string]int64{"buyer": start - price, "seller": start - bond + price, "other": start})
		})
	}
}

// The seller serves its two public files, in ranges, and nothing else of its folder.
func TestHandlerServesNoSecrets(t *testing.T) {
	x := newSale(t, nil)
	for _, path := range []string{"/", "/secrets.json", "/../secrets.json", "/public/index", "/%2e%2e/secrets.json",
		"/index/", "/sealed.part", "/.lock"} {
		answer, err := http.Get(x.web.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, x.web.URL+"/sealed", nil)
	r.Header.Set("Range", "bytes=10-19")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, _ := io.ReadAll(answer.Body)
	want, _ := os.ReadFile(filepath.Join(x.seller.dir, dirPublic, goods.FileSealed))
	if answer.StatusCode != http.StatusPartialContent || !bytes.Equal(got, want[10:20]) {
		t.Errorf("a range: %d, %d bytes", answer.StatusCode, len(got))
	}
	b := x.buyer(t, "buyer")
	if _, err := b.Buy(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(x.seller.dir, fileSecrets), filepath.Join(b.Dir, fileOrder)} {
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// A box opens for its offer and its buyer only, and no other bytes open.
func FuzzBox(f *testing.F) {
	private, err := NewSealKey()
	if err != nil {
		f.Fatal(err)
	}
	secret := bytes.Repeat([]byte{5}, sale.KeyBytes)
	box, err := BoxMask(private.PublicKey().Bytes(), 7, "buyer", secret)
	if err != nil || len(box) != sale.MaskBoxBytes {
		f.Fatal(err)
	}
	f.Add(box, uint64(7), "buyer")
	f.Add(box, uint64(8), "buyer")
	f.Add(box, uint64(7), "other")
	f.Add(make([]byte, sale.MaskBoxBytes), uint64(7), "buyer")
	f.Add([]byte{}, uint64(0), "")
	f.Fuzz(func(t *testing.T, data []byte, offer uint64, buyer string) {
		got, err := OpenMask(private, offer, buyer, data)
		right := bytes.Equal(data, box) && offer == 7 && buyer == "buyer"
		// X25519 ignores the top bit of the key; HPKE authenticates the bytes as they are.
		if right != (err == nil) || right && !bytes.Equal(got, secret) {
			t.Errorf("offer %d, buyer %q: %v", offer, buyer, err)
		}
	})
}

func TestBoxMaskRefuses(t *testing.T) {
	private, _ := NewSealKey()
	secret := make([]byte, sale.KeyBytes)
	for name, c := range map[string]struct{ public, mask []byte }{
		"a point of low order": {make([]byte, 32), secret},
		"a short key":          {private.PublicKey().Bytes()[1:], secret},
		"a short mask":         {private.PublicKey().Bytes(), secret[1:]},
	} {
		if _, err := BoxMask(c.public, 1, "buyer", c.mask); code(err) != fault.BadBox {
			t.Errorf("%s: %v", name, err)
		}
	}
}
