// Package catalog has the rules of the listings of a network: models and data sets with their licence and the works
// that they were made from, the royalties that follow, and the sale of shares of revenue.
//
// The package stores nothing and moves no coins.
package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/starling-network/starling/canon"
)

// Limits of a listing.
const (
	MaxTitle   = 100     // bytes
	MaxLicence = 100     // bytes of its name
	MaxParents = 8       // works that one was made from
	MaxDigests = 8       // digests of one work in openings of orders
	MaxRoyalty = 500_000 // millionths of the revenue of a work
	maxJob     = 96      // bytes of the name of a job

	// MinAge is the number of blocks after which a listing binds the orders of other accounts. An account that reads the
	// digests of an order that is on its way cannot list them before it.
	MinAge = 20
)

const million = 1_000_000

// Errors of listings.
var (
	ErrListing = errors.New("catalog: not a listing")
	ErrParents = errors.New("catalog: a work cannot have these parents")
	ErrClaimed = errors.New("catalog: the digest cannot be claimed")
)

// Kind of a listed work.
type Kind string

// Kinds of works.
const (
	Model Kind = "model"
	Data  Kind = "data"
)

// own begins the names of licences that SPDX does not list.
const own = "LicenseRef-"

// Licence is the licence of a work: an identifier of SPDX, or a name that begins with LicenseRef- and the digest of its
// text.
type Licence struct {
	Name string       `cbor:"1,keyasint"`
	Text canon.Digest `cbor:"2,keyasint,omitzero"` // zero for an identifier of SPDX
}

// valid reports whether a licence has the right form. Whether SPDX lists the identifier is not checked.
func (l Licence) valid() bool {
	name, isOwn := strings.CutPrefix(l.Name, own)
	return name != "" && len(l.Name) <= MaxLicence && strings.Trim(name, identifier) == "" && isOwn == !l.Text.IsZero()
}

const identifier = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-"

// Terms are the part of a listing that its owner states.
type Terms struct {
	Kind    Kind         `cbor:"1,keyasint"`
	Title   string       `cbor:"2,keyasint"`
	Licence Licence      `cbor:"3,keyasint"`
	Files   canon.Digest `cbor:"4,keyasint"`           // of the public description of the files, as a sale of files has it
	Job     string       `cbor:"5,keyasint,omitempty"` // that trained it; "": the work has shares of its own
	Royalty uint32       `cbor:"6,keyasint"`           // millionths of the revenue of a work that is made from it
	// digests by which the opening of an order names the work: its first checkpoint, frozen weights, or manifest of data
	Digests []canon.Digest `cbor:"7,keyasint,omitempty"`
}

// Validate checks terms by themselves.
func (t Terms) Validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrListing, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Kind != Model && t.Kind != Data:
		return reject("the kind %q, wanted %s or %s", t.Kind, Model, Data)
	case t.Title == "" || len(t.Title) > MaxTitle || !utf8.ValidString(t.Title):
		return reject("a title of %d bytes, wanted 1 to %d of UTF-8", len(t.Title), MaxTitle)
	case !t.Licence.valid():
		return reject("a licence %q, wanted an identifier of SPDX, or a name that begins with %s and the digest of its text",
			t.Licence.Name, own)
	case t.Files.IsZero():
		return reject("the digest of the files is missing")
	case len(t.Job) > maxJob || t.Job != "" && t.Kind != Model:
		return reject("a job that trained it, of %d bytes, for the kind %s", len(t.Job), t.Kind)
	case t.Royalty > MaxRoyalty:
		return reject("a royalty of %d millionths, at most %d", t.Royalty, MaxRoyalty)
	case len(t.Digests) > MaxDigests:
		return reject("%d digests, at most %d", len(t.Digests), MaxDigests)
	}
	for i, d := range t.Digests {
		if d.IsZero() || slices.Contains(t.Digests[:i], d) {
			return reject("digest %d is zero, or is there twice", i)
		}
	}
	return nil
}

// Parent is a work that another was made from, with the royalty that was in force when the other was listed or ordered.
type Parent struct {
	Listing uint64 `cbor:"1,keyasint"`
	Royalty uint32 `cbor:"2,keyasint"` // millionths of the revenue of the child
	// the order of the child named a digest of the parent; false: the owner of the child named the parent
	Known bool `cbor:"3,keyasint,omitempty"`
}

// Listing is a work on a network. It never changes.
type Listing struct {
	ID      uint64   `cbor:"1,keyasint"`
	Owner   string   `cbor:"2,keyasint"`
	Height  int64    `cbor:"3,keyasint"` // block in which it was listed
	Terms   Terms    `cbor:"4,keyasint"`
	Parents []Parent `cbor:"5,keyasint,omitempty"`
}

// Binds reports whether an order of a consumer at a height that names a digest of the listing owes its royalty.
func (l Listing) Binds(consumer string, height int64) bool {
	return l.Owner == consumer || height-l.Height >= MinAge
}

// prefix begins the names of shares of works that no job trained. No job can have such a name.
const prefix = "listing/"

// Pool names the shares that get the revenue of a listing: those of its job, or its own.
func (l Listing) Pool() string {
	if l.Terms.Job != "" {
		return l.Terms.Job
	}
	return fmt.Sprintf("%s%d", prefix, l.ID)
}

// Number is the number of the listing whose shares have a name, if it is that of a work that no job trained.
func Number(pool string) (id uint64, ok bool) {
	text, ok := strings.CutPrefix(pool, prefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(text, 10, 64)
	return id, err == nil && id > 0 && text == strconv.FormatUint(id, 10)
}

// Claim says whose a digest in openings of orders is.
type Claim struct {
	Account string `cbor:"1,keyasint"`           // that ordered with the digest first, or listed it
	Listing uint64 `cbor:"2,keyasint,omitempty"` // that has the digest
	// another account ordered with it before it was listed: no listing can have it
	Common bool `cbor:"3,keyasint,omitempty"`
}

// Ordered is a claim after an order of a consumer with the digest. The zero value has no account yet.
func (c Claim) Ordered(consumer string) Claim {
	if c.Account == "" {
		return Claim{Account: consumer}
	}
	c.Common = c.Common || c.Listing == 0 && c.Account != consumer
	return c
}

// List is a claim after a listing of an owner with the digest.
func (c Claim) List(owner string, id uint64) (Claim, error) {
	switch {
	case c.Listing > 0:
		return c, fmt.Errorf("%w: listing %d has it", ErrClaimed, c.Listing)
	case c.Common || c.Account != "" && c.Account != owner:
		return c, fmt.Errorf("%w: in an order", ErrClaimed)
	}
	return Claim{Account: owner, Listing: id}, nil
}

// Made are the parents of a work: those known, then those that its owner names, in the order of their numbers. Each
// has the royalty of its terms. An owner may not name more than all parents fit in, or parents that together ask for
// more than the whole revenue: none would get its part.
func Made(known []Parent, named []Listing) ([]Parent, error) {
	parents, asked := slices.Clone(known), uint32(0)
	for _, p := range known {
		asked += p.Royalty
	}
	named = slices.Clone(named)
	slices.SortFunc(named, func(a, b Listing) int { return int(int64(a.ID) - int64(b.ID)) })
	for i, l := range named {
		switch {
		case i > 0 && named[i-1].ID == l.ID:
			return nil, fmt.Errorf("%w: %d is named twice", ErrParents, l.ID)
		case slices.ContainsFunc(known, func(p Parent) bool { return p.Listing == l.ID }):
			continue
		}
		if asked += l.Terms.Royalty; asked > million {
			return nil, fmt.Errorf("%w: together they ask for more than the whole revenue", ErrParents)
		}
		parents = append(parents, Parent{Listing: l.ID, Royalty: l.Terms.Royalty})
	}
	if len(parents) > MaxParents {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrParents, len(parents), MaxParents)
	}
	return parents, nil
}

// Asks reports whether a parent that the owner names asks for a royalty.
func Asks(parents []Parent) bool {
	return slices.ContainsFunc(parents, func(p Parent) bool { return !p.Known && p.Royalty > 0 })
}

// Recognise are the parents of a job whose order names digests of these listings, in the order of their numbers. An
// earlier listing comes before a later one if together they ask for more than the whole revenue.
func Recognise(listed []Listing) (known []Parent) {
	listed = slices.Clone(listed)
	slices.SortFunc(listed, func(a, b Listing) int { return int(int64(a.ID) - int64(b.ID)) })
	left := uint32(million)
	for i, l := range listed {
		if i > 0 && listed[i-1].ID == l.ID {
			continue
		}
		p := Parent{Listing: l.ID, Royalty: min(l.Terms.Royalty, left), Known: true}
		left -= p.Royalty
		known = append(known, p)
	}
	return known
}
