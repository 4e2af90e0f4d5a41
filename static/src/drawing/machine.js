// A machine as a tree: sockets > NUMA nodes > groups (dies, L3 caches, clusters) > cores > threads.
// Positions in `data.cpus` stand for CPUs everywhere; ids are only shown.

import { ids } from "../dom.js";

/** Cores of some CPUs, each with its threads side by side; a CPU whose core is unknown is a core by itself. */
function cores(positions, cpus) {
  const found = new Map();
  for (const at of positions) {
    const key = cpus.first[at];
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(at);
  }
  return [...found.values()];
}

function groups(node, positions, cpus) {
  if (!node.groups.length) return [{ label: "", cores: cores(positions, cpus) }];
  const at = new Map(positions.map((position) => [cpus.id[position], position]));
  return node.groups.map((list, number) => ({
    label: `${node.groupLabel} ${number}`,
    cores: cores(ids(list).filter((id) => at.has(id)).map((id) => at.get(id)), cpus),
  }));
}

/** Boxes of the drawing: one for each socket, then what lies in none. */
export function machine(data, only = null) {
  const members = new Map(data.nodes.map((node) => [node.id, []]));
  const homeless = [];
  data.cpus.id.forEach((_, at) => {
    const numa = data.cpus.numa[at];
    if (members.has(numa)) members.get(numa).push(at);
    else homeless.push(at);
  });
  const sockets = new Map();
  const box = (key, kind, id) => {
    if (!sockets.has(key)) sockets.set(key, { kind, id, nodes: [] });
    return sockets.get(key);
  };
  for (const node of data.nodes) {
    if (only !== null && node.id !== only) continue;
    const drawn = { node, groups: groups(node, members.get(node.id), data.cpus), cpus: members.get(node.id) };
    if (node.socket !== null) box(node.socket, "socket", node.socket).nodes.push(drawn);
    else if (members.get(node.id).length) box("several", "several", null).nodes.push(drawn);
    else box("memory", "memory", null).nodes.push(drawn);
  }
  if (homeless.length && only === null) {
    const group = { label: "", cores: homeless.map((at) => [at]) };
    box("offline", "offline", null).nodes.push({ node: null, groups: [group], cpus: homeless });
  }
  const order = { socket: 0, several: 1, memory: 2, offline: 3 };
  return [...sockets.values()].sort((a, b) => order[a.kind] - order[b.kind] || a.id - b.id);
}

/** For each container the positions of its CPUs; for each CPU the containers that own it or were narrowed to it. */
export function relations(data) {
  const at = new Map(data.cpus.id.map((id, position) => [id, position]));
  const cpusOf = data.containers.map((each) => ids(each.cpus).filter((id) => at.has(id)).map((id) => at.get(id)));
  const containersOf = data.cpus.id.map(() => []);
  data.containers.forEach((each, index) => {
    if (each.kind === "exclusive" || each.kind === "narrowed") cpusOf[index].forEach((cpu) => containersOf[cpu].push(index));
  });
  return { cpusOf, containersOf };
}
