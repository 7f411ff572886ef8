package app

import (
	"encoding/json"
	"fmt"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
)

// DefaultGenesis is the state before the first block, of every module.
func (a *App) DefaultGenesis() map[string]json.RawMessage { return a.basics.DefaultGenesis(a.Codec) }

// Export is the state of every module after the latest block, as the genesis of a chain that goes on with the next one:
// the heights in it stay what they are, and runs, disputes and votes that are under way go on.
func (a *App) Export() (json.RawMessage, error) {
	ctx, err := a.CreateQueryContext(a.LastBlockHeight(), false)
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	state, err := a.modules.ExportGenesis(ctx.WithGasMeter(storetypes.NewInfiniteGasMeter()), a.Codec)
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	return json.Marshal(state)
}
