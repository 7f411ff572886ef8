// Package listing brings a model and the place of a provider onto a network, and finds models by the words of people.
// A model or a place that is there already stays as it is.
package listing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/push/published"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/protocol/hosting"
)

// Errors of listings.
var (
	ErrFolder = errors.New("the folder holds no model")
	ErrOther  = errors.New("the files are not those of the model on the network")
	ErrModel  = errors.New("no such model is hosted")
	ErrMany   = errors.New("several models have this name")
)

// Network is the part of a network that a listing needs.
type Network interface {
	Find(ctx context.Context, files canon.Digest) (uint64, error)
	Register(ctx context.Context, m hosting.Model) (uint64, error)
	Model(ctx context.Context, id uint64) (hosting.Model, error)
	Models(ctx context.Context) ([]hosting.Model, error)
	Places(ctx context.Context, model uint64) ([]hosting.Place, error)
	Host(ctx context.Context, p hosting.Place) error
}

// Files is the digest of the files of the model in a folder: those that starling model sell offers.
func Files(ctx context.Context, folder string) (canon.Digest, error) {
	found, err := published.Files(folder)
	if err != nil || !published.IsModel(folder) {
		return canon.Digest{}, errors.Join(fmt.Errorf("%w: %s", ErrFolder, folder), err)
	}
	source := goods.Source{Folder: folder}
	for _, f := range found {
		source.Files = append(source.Files, f.Name)
	}
	return goods.Describe(ctx, source, nil)
}

// Ensure returns the model with a number and these digests, or registers it for the account if the number is 0.
func Ensure(ctx context.Context, n Network, id uint64, m hosting.Model) (hosting.Model, error) {
	var err error
	if id == 0 {
		id, err = n.Find(ctx, m.Files) // of a call before this one
	}
	if id == 0 && err == nil {
		id, err = n.Register(ctx, m)
	}
	if err != nil {
		return m, err
	}
	have, err := n.Model(ctx, id)
	if err == nil && have.Base != m.Base {
		err = fmt.Errorf("%w: model %d, %s, is an adapter of model %d, not of %d", ErrOther, id, have.Name, have.Base, m.Base)
	}
	if err == nil && (have.Files != m.Files || have.Weights != m.Weights) {
		err = fmt.Errorf("%w: model %d, %s, has the files %s and the weights %s, and the folder %s and %s", ErrOther, id,
			have.Name, have.Files.Short(), have.Weights.Short(), m.Files.Short(), m.Weights.Short())
	}
	return have, err
}

// Offer offers a place, or changes it, unless the network has it as it is.
func Offer(ctx context.Context, n Network, p hosting.Place) error {
	places, err := n.Places(ctx, p.Model)
	if err != nil {
		return err
	}
	for _, have := range places {
		if have.Provider == p.Provider {
			p.Bond = max(p.Bond, have.Bond) // it does not shrink
			if have.URL == p.URL && have.Prices == p.Prices && have.Bond == p.Bond && have.Open() {
				return nil
			}
		}
	}
	return n.Host(ctx, p)
}

// MaxAdapters is the most adapters of a model that are served with it.
const MaxAdapters = 64

// Adapters are the adapters of a model that providers host, in the order of their numbers, at most MaxAdapters, and the
// names by which they are served. A name is that of the adapter that was registered first, whether it is hosted or not:
// otherwise a stranger would have it as soon as no provider hosts that one. All others have @ and their numbers after
// it, as has a name with an @ in it.
func Adapters(ctx context.Context, n Network, base hosting.Model) (list []hosting.Model, names map[uint64]string,
	_ error) {
	all, err := n.Models(ctx)
	if err != nil {
		return nil, nil, err
	}
	places, err := n.Places(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	hosted, taken := map[uint64]bool{}, map[string]bool{base.Name: true}
	for _, p := range places {
		hosted[p.Model] = hosted[p.Model] || p.Open()
	}
	names = map[uint64]string{}
	for _, m := range slices.Backward(all) { // the latest is the first
		if m.Base != base.ID {
			continue
		}
		names[m.ID] = m.Name
		if taken[m.Name] || strings.Contains(m.Name, "@") {
			names[m.ID] = fmt.Sprintf("%s@%d", m.Name, m.ID)
		}
		taken[m.Name] = true
		if hosted[m.ID] && len(list) < MaxAdapters {
			list = append(list, m)
		}
	}
	return list, names, nil
}

// Find is the model that a number or a name names.
func Find(ctx context.Context, n Network, text string) (hosting.Model, error) {
	all, err := n.Models(ctx)
	if err != nil {
		return hosting.Model{}, err
	}
	id, _ := strconv.ParseUint(text, 10, 64)
	var found []hosting.Model
	for _, m := range all {
		if m.ID == id {
			return m, nil
		}
		if m.Name == text {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return hosting.Model{}, fmt.Errorf("%w: %s", ErrModel, text)
	case 1:
		return found[0], nil
	}
	return hosting.Model{}, fmt.Errorf("%w: %s is model %d and model %d", ErrMany, text, found[0].ID, found[1].ID)
}
