package lint

import (
	"strconv"
	"strings"
	"testing"
)

// ofServer are packages of other modules that import the server of the Cosmos SDK, and that this module imports.
var ofServer = []string{
	"github.com/cosmos/cosmos-sdk/server", "github.com/cosmos/cosmos-sdk/runtime",
	"github.com/cosmos/cosmos-sdk/testutil/sims", "github.com/cosmos/cosmos-sdk/x/genutil",
	"github.com/cosmos/cosmos-sdk/x/simulation", "github.com/cosmos/cosmos-sdk/x/upgrade/keeper",
	"github.com/cosmos/ibc-go",
}

// ofSDK begin the paths of packages that are or import packages of the Cosmos SDK, other than light.
var ofSDK = []string{"github.com/cosmos/cosmos-sdk/", "github.com/cosmos/ibc-go/"}

// light is the package of the Cosmos SDK that imports none of the others: the text form of addresses.
const light = "github.com/cosmos/cosmos-sdk/types/bech32"

// linking counts the test binaries that link a package whose path begins with one of the given. It follows the
// imports of this module, and is quicker than go list.
func linking(paths []string) func([]source) map[string]int {
	return func(all []source) map[string]int {
		program, tests := map[string][]string{}, map[string][]string{} // package: its imports
		for _, s := range all {
			to := program
			if s.test() {
				to = tests
			}
			for _, i := range s.file.Imports {
				if p, err := strconv.Unquote(i.Path.Value); err == nil {
					to[s.dir()] = append(to[s.dir()], p)
				}
			}
		}
		seen := map[string]bool{} // package of this module: whether it links one of the paths
		var links func(imports []string) bool
		links = func(imports []string) bool {
			found := false
			for _, p := range imports {
				dir, ours := strings.CutPrefix(p, module)
				if !ours {
					for _, begin := range paths {
						found = found || strings.HasPrefix(p, begin) && p != light
					}
					continue
				}
				if _, known := seen[dir]; !known {
					seen[dir] = links(program[dir])
				}
				found = found || seen[dir]
			}
			return found
		}
		out := map[string]int{}
		for dir, imports := range tests {
			if links(imports) || links(program[dir]) {
				out[dir] = 1
			}
		}
		return out
	}
}

// The count follows imports of imports, and takes a package without tests for no binary.
func TestLinking(t *testing.T) {
	all := sources(t)
	server, sdk := linking(ofServer)(all), linking(ofSDK)(all)
	for dir := range server {
		if sdk[dir] == 0 {
			t.Errorf("%s links the server of the SDK and no SDK", dir)
		}
	}
	if server["chain"] == 0 || server["chain/x/market"] != 0 || sdk["chain/x/market"] == 0 || sdk["canon"] != 0 {
		t.Errorf("%d link the server, %d the SDK: %v", len(server), len(sdk), server)
	}
}
