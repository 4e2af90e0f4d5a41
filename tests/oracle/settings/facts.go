package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
)

// printFacts prints {"fields": {path: type}, "gates": {name: [[minor, stage, on, locked]...]}, "dependencies": {name: [names]},
// "flags": {name: type}}.
func printFacts() {
	fields := map[string]string{}
	walk(reflect.TypeFor[kubeletv1beta1.KubeletConfiguration](), "", fields)
	gates := map[featuregate.Feature][][4]any{}
	for name, specs := range utilfeature.DefaultMutableFeatureGate.GetAllVersioned() {
		for _, spec := range specs {
			minor := uint(0)
			if spec.Version != nil {
				minor = spec.Version.Minor()
			}
			stage := string(spec.PreRelease)
			if stage == "" {
				stage = "GA"
			}
			gates[name] = append(gates[name], [4]any{minor, stage, spec.Default, spec.LockToDefault})
		}
	}
	facts := map[string]any{"fields": fields, "gates": gates}
	if known, ok := any(utilfeature.DefaultMutableFeatureGate).(interface {
		Dependencies() map[featuregate.Feature][]featuregate.Feature
	}); ok {
		facts["dependencies"] = known.Dependencies()
	}
	facts["flags"] = knownFlags()
	must(json.NewEncoder(os.Stdout).Encode(facts))
}

// walk notes every field below a struct, by its JSON names; "[]" stands for an element, "{}" for a value of a map.
func walk(of reflect.Type, path string, fields map[string]string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if custom(of) {
		fields[path] = of.String()
		return
	}
	switch of.Kind() {
	case reflect.Struct:
		if path != "" {
			fields[path] = "struct " + of.String()
		}
		for i := range of.NumField() {
			name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			switch {
			case name == "-":
			case name == "" && (of.Field(i).Anonymous || strings.Contains(options, "inline")):
				walk(of.Field(i).Type, path, fields)
			default:
				walk(of.Field(i).Type, strings.TrimPrefix(path+"."+name, "."), fields)
			}
		}
	case reflect.Slice:
		fields[path] = "list " + of.String()
		walk(of.Elem(), path+"[]", fields)
	case reflect.Map:
		fields[path] = "map " + of.String()
		walk(of.Elem(), path+"{}", fields)
	default:
		fields[path] = fmt.Sprint(of.Kind(), " ", of)
	}
}

func custom(of reflect.Type) bool {
	return reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func knownFlags() map[string]string {
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	config, err := options.NewKubeletConfiguration()
	must(err)
	options.NewKubeletFlags().AddFlags(flags)
	options.AddKubeletConfigFlags(flags, config)
	options.AddGlobalFlags(flags)
	known := map[string]string{}
	flags.VisitAll(func(flag *pflag.Flag) { known[flag.Name] = flag.Value.Type() })
	return known
}
