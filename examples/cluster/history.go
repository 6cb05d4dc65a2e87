package main

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Histories of keys that several clients write and read: porcupine decides whether they are linearizable.

type registerInput struct {
	op    byte // opPut, opDelete, or opGet
	key   string
	value string
}

type registerOutput struct {
	value string
	found bool
}

const opGet byte = 3

// neverReturned is the end of an operation whose outcome is unknown: it may take effect at any later time.
const neverReturned = math.MaxInt64

var registerModel = porcupine.Model{
	Init: func() interface{} { return registerOutput{} },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		switch in := input.(registerInput); in.op {
		case opPut:
			return true, registerOutput{value: in.value, found: true}
		case opDelete:
			return true, registerOutput{}
		default:
			return output.(registerOutput) == state.(registerOutput), state
		}
	},
	Equal: func(a, b interface{}) bool { return a.(registerOutput) == b.(registerOutput) },
}

// HistoryReport is the result for all keys. Verdict is "linearizable", "not linearizable", or "undecided" after a timeout.
type HistoryReport struct {
	Operations int    `json:"operations"`
	Keys       int    `json:"keys"`
	Unknown    int    `json:"unknown"`
	Undecided  int    `json:"undecided_keys"`
	Verdict    string `json:"verdict"`
	Example    string `json:"example,omitempty"`
}

// checkHistory checks each key by itself, as keys are independent, each for at most perKey.
func checkHistory(history []porcupine.Operation, perKey time.Duration) HistoryReport {
	byKey := map[string][]porcupine.Operation{}
	report := HistoryReport{Operations: len(history), Verdict: "linearizable"}
	for _, operation := range history {
		key := operation.Input.(registerInput).key
		byKey[key] = append(byKey[key], operation)
		if operation.Return == neverReturned {
			report.Unknown++
		}
	}
	report.Keys = len(byKey)
	keys := make([]string, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		switch porcupine.CheckOperationsTimeout(registerModel, byKey[key], perKey) {
		case porcupine.Illegal:
			report.Verdict = "not linearizable"
			report.Example = describeHistory(key, byKey[key])
			return report
		case porcupine.Unknown:
			report.Undecided++
			report.Verdict = "undecided"
		}
	}
	return report
}

// describeHistory lists a key's operations in the order of their begins.
func describeHistory(key string, operations []porcupine.Operation) string {
	sort.Slice(operations, func(i, j int) bool { return operations[i].Call < operations[j].Call })
	text := key
	names := map[byte]string{opPut: "put", opDelete: "delete", opGet: "get"}
	for _, operation := range operations {
		in, out := operation.Input.(registerInput), operation.Output.(registerOutput)
		value := in.value
		if in.op == opGet {
			value = out.value
		}
		end := fmt.Sprint(operation.Return)
		if operation.Return == neverReturned {
			end = "unknown"
		}
		text += fmt.Sprintf("\n  client %d: %s %q from %d to %s ns", operation.ClientId, names[in.op], value, operation.Call, end)
	}
	return text
}
