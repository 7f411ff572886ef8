package ledger

import (
	"encoding/json"
	"fmt"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/chain/adapter"
)

// SetParams gives a module of this project, by its name, other parameters in a genesis. The module keeps them in one
// item: those of the modules of Cosmos SDK have other forms.
func SetParams[T any](doc *cmttypes.GenesisDoc, name string, params T) error {
	value, err := adapter.Record[T]().EncodeJSON(params)
	if err != nil {
		return err
	}
	var state, module map[string]json.RawMessage
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		return err
	}
	if err := json.Unmarshal(state[name], &module); err != nil {
		return fmt.Errorf("ledger: the state of %s: %w", name, err)
	}
	module["params"] = json.RawMessage(`[{"key":"item","value":` + string(value) + `}]`)
	if state[name], err = json.Marshal(module); err != nil {
		return err
	}
	doc.AppState, err = json.Marshal(state)
	return err
}
