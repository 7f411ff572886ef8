package apply

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/pretrained"
)

// receipts is what comes of a file of receipts.
type receipts struct {
	Answers int       `json:"answers"`
	Tokens  int       `json:"tokens"`
	Refused int       `json:"refused"`
	Results []finding `json:"results"`
}

// finding is what comes of a receipt.
type finding struct {
	Holds bool   `json:"holds"`
	Why   string `json:"why,omitempty"`   // it does not
	Wrong *int   `json:"wrong,omitempty"` // the first token of the answer that is wrong, from 0
}

// find checks a line, which may be no receipt: a line of a stranger hides no other.
func find(m *checked.Model, line []byte, threads int) (f finding, tokens int, err error) {
	s, err := checked.ReadReceipt(line)
	if err == nil {
		err = m.Verify(s)
	}
	if err != nil {
		return finding{Why: err.Error()}, 0, nil
	}
	wrong, err := m.Check(s.Receipt, threads)
	if err != nil || wrong < 0 {
		return finding{Holds: err == nil}, len(s.Receipt.Answer), err
	}
	why := fmt.Sprintf("token %d of %d is not the one that the model gives", wrong, len(s.Receipt.Answer))
	return finding{Why: why, Wrong: &wrong}, len(s.Receipt.Answer), nil
}

// checkReceipts checks the receipts of a file line by line.
func checkReceipts(cmd *cobra.Command, c *terminal.Console, file io.Reader, of *checked.Model, threads int) error {
	all := receipts{Results: []finding{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxAnswerBytes)
	for lines.Scan() {
		if err := cmd.Context().Err(); err != nil {
			return terminal.IfInterrupted(cmd.Context(), err, "")
		}
		f, tokens, err := find(of, lines.Bytes(), threads)
		if err != nil {
			return err
		}
		all.Answers, all.Tokens, all.Results = all.Answers+1, all.Tokens+tokens, append(all.Results, f)
		if !f.Holds {
			all.Refused++
		}
		if !f.Holds && !c.Form.Machine() {
			fmt.Printf("answer %d is refused: %s\n", all.Answers, f.Why)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	var err error
	if c.Form.Machine() {
		err = c.Form.Print(os.Stdout, terminal.Figures(all))
	} else {
		fmt.Printf("%d answers of %d tokens checked exactly: %d refused\n", all.Answers, all.Tokens, all.Refused)
	}
	if err != nil || all.Refused == 0 {
		return err
	}
	return terminal.WithExit(&terminal.Problem{Code: "RECEIPT_REFUSED",
		What: fmt.Sprintf("%d of %d answers are not what the model gives", all.Refused, all.Answers),
		Fix:  "keep the receipts: a signed one with a wrong token shows that its provider lied"}, terminal.ExitVerification)
}

// checkable is the model of a folder, or with an adapter of it, whose answers can be checked.
func checkable(dir string, of *pretrained.Model, adapter string) (*checked.Model, error) {
	m, err := checked.New(of)
	if err == nil && adapter != "" {
		m, err = m.Adapted(adapter)
	}
	if err != nil {
		return nil, terminal.UnreadableModel("use", dir, err, "a model in float32, and an adapter of it")
	}
	return m, nil
}

// adapterFlag is the flag of commands about receipts of an adapter.
func adapterFlag(cmd *cobra.Command, adapter *string) {
	cmd.Flags().StringVar(adapter, "adapter", "", "folder of the adapter that wrote the answers, as PEFT writes it")
}

// errBoth is for flags that exclude each other.
var errBoth = errors.New("--receipts and --prove exclude each other")
