// Reads histories of registers from standard input, one JSON document, and says of each whether it is linearizable.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// absent is the value of a register that does not exist.
const absent = ""

// operation is one call of one client. A cas changes Expect into Value: a create expects absent, a delete leaves absent.
type operation struct {
	Client  int    `json:"client"`
	Kind    string `json:"kind"`    // read, cas, set
	Expect  string `json:"expect"`  // of a cas
	Value   string `json:"value"`   // read, or written
	Outcome string `json:"outcome"` // ok, refused, maybe
	Call    int64  `json:"call"`
	Return  int64  `json:"return"` // of maybe: the end of the run
}

type register struct {
	Key        string      `json:"key"`
	Init       string      `json:"init"`
	Operations []operation `json:"operations"`
}

type verdict struct {
	Key string `json:"key"`
	// Result is ok, illegal, or undecided when the time was over.
	Result string `json:"result"`
	// Stuck is an operation that no order of the longest prefix leaves room for.
	Stuck *operation `json:"stuck,omitempty"`
}

func model(init string) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{init} },
		Step: func(state, input, _ interface{}) []interface{} { return step(state.(string), input.(operation)) },
		Hash: func(state interface{}) uint64 {
			hash := uint64(14695981039346656037)
			for _, b := range []byte(state.(string)) {
				hash = (hash ^ uint64(b)) * 1099511628211
			}
			return hash
		},
	}
	return nondeterministic.ToModel()
}

// step gives the states an operation may leave behind; none: it cannot have happened here.
func step(state string, op operation) []interface{} {
	applies := op.Kind == "set" || state == op.Expect
	switch {
	case op.Kind == "read" && state == op.Value:
		return []interface{}{state}
	case op.Kind == "read":
		return nil
	case op.Outcome == "ok" && applies:
		return []interface{}{op.Value}
	case op.Outcome == "refused" && !applies:
		return []interface{}{state}
	case op.Outcome == "maybe" && applies:
		return []interface{}{op.Value, state}
	case op.Outcome == "maybe":
		return []interface{}{state}
	}
	return nil
}

func check(one register, limit time.Duration) verdict {
	history := make([]porcupine.Operation, len(one.Operations))
	for i, op := range one.Operations {
		history[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Output: nil, Return: op.Return}
	}
	result, info := porcupine.CheckOperationsVerbose(model(one.Init), history, limit)
	switch result {
	case porcupine.Ok:
		return verdict{Key: one.Key, Result: "ok"}
	case porcupine.Unknown:
		return verdict{Key: one.Key, Result: "undecided"}
	}
	return verdict{Key: one.Key, Result: "illegal", Stuck: firstStuck(one.Operations, info)}
}

// firstStuck gives the operation that ended first among those that the longest linearization could not take in.
func firstStuck(operations []operation, info porcupine.LinearizationInfo) *operation {
	var longest []int
	for _, partition := range info.PartialLinearizations() {
		for _, partial := range partition {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
	}
	taken := make(map[int]bool, len(longest))
	for _, id := range longest {
		taken[id] = true
	}
	var stuck *operation
	for i := range operations {
		if !taken[i] && (stuck == nil || operations[i].Return < stuck.Return) {
			stuck = &operations[i]
		}
	}
	return stuck
}

func run() error {
	var input struct {
		LimitMs   int        `json:"limitMs"`
		Registers []register `json:"registers"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		return err
	}
	verdicts := make([]verdict, len(input.Registers))
	for i, one := range input.Registers {
		verdicts[i] = check(one, time.Duration(input.LimitMs)*time.Millisecond)
	}
	return json.NewEncoder(os.Stdout).Encode(verdicts)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
