// Kubernetes' own audit policy loader and evaluator, behind JSON lines.
//
// Each line of standard input is {"policy": <text, base64>, "requests": [<attributes>]}; each line of standard output is
// {"error": "..."} or {"warnings": ["..."], "results": [{"level", "omitStages", "omitManagedFields"}]}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

type attributes struct {
	User        *string  `json:"user"`
	Groups      []string `json:"groups"`
	Verb        string   `json:"verb"`
	IsResource  bool     `json:"isResource"`
	APIGroup    string   `json:"apiGroup"`
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource"`
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	Path        string   `json:"path"`
}

type question struct {
	Policy   []byte       `json:"policy"`
	Requests []attributes `json:"requests"`
}

type result struct {
	Level             string   `json:"level"`
	OmitStages        []string `json:"omitStages"`
	OmitManagedFields bool     `json:"omitManagedFields"`
}

type answer struct {
	Error string `json:"error,omitempty"`
	// The fields that an error is about, when the loader knows them.
	Places   []string `json:"places"`
	Warnings []string `json:"warnings"`
	Results  []result `json:"results"`
}

func main() {
	// What the loader only logs is asked for again below, as a list.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var asked question
		if err := decoder.Decode(&asked); err == io.EOF {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := encoder.Encode(respond(asked)); err != nil {
			os.Exit(1)
		}
	}
}

func respond(asked question) answer {
	loaded, err := policy.LoadPolicyFromBytes(asked.Policy)
	if err != nil {
		return answer{Error: err.Error(), Places: places(err), Warnings: []string{}, Results: []result{}}
	}
	given := answer{Places: []string{}, Warnings: strictFaults(asked.Policy), Results: []result{}}
	evaluator := policy.NewPolicyRuleEvaluator(loaded)
	for _, one := range asked.Requests {
		config := evaluator.EvaluatePolicyRule(one.record())
		stages := policy.ConvertStagesToStrings(config.OmitStages)
		slices.Sort(stages)
		// The policy's own list, used when no rule matches, may name a stage twice.
		given.Results = append(given.Results, result{string(config.Level), slices.Compact(stages), config.OmitManagedFields})
	}
	return given
}

func places(err error) []string {
	found := []string{}
	if all, ok := err.(utilerrors.Aggregate); ok {
		for _, one := range all.Errors() {
			if fault, ok := one.(*field.Error); ok {
				found = append(found, fault.Field)
			}
		}
	}
	return found
}

// strictFaults is what the loader warns of before it falls back to lenient decoding.
func strictFaults(text []byte) []string {
	strict := serializer.NewCodecFactory(audit.Scheme, serializer.EnableStrict).UniversalDecoder()
	_, _, err := strict.Decode(text, nil, &auditinternal.Policy{})
	faults := []string{}
	if found, ok := runtime.AsStrictDecodingError(err); ok {
		for _, fault := range found.Errors() {
			faults = append(faults, fault.Error())
		}
	}
	return faults
}

func (a attributes) record() authorizer.Attributes {
	record := authorizer.AttributesRecord{
		Verb: a.Verb, ResourceRequest: a.IsResource, APIGroup: a.APIGroup, Resource: a.Resource,
		Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name, Path: a.Path,
	}
	if a.User != nil {
		record.User = &user.DefaultInfo{Name: *a.User, Groups: a.Groups}
	}
	return record
}
