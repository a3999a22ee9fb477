// The panel: one group of faults for each downstream.

const panel = document.getElementById("panel");
const said = document.getElementById("said");

function draw({ faults, downstreams }) {
  panel.replaceChildren(...downstreams.map((d) => {
    const group = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = d.name;
    group.append(legend, ...faults.map((fault) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      const text = document.createElement("span");
      Object.assign(input, { type: "radio", name: d.name, value: fault, checked: fault === d.fault });
      text.textContent = fault;
      label.append(input, text);
      return label;
    }));
    return group;
  }));
}

panel.addEventListener("change", async (e) => {
  const wanted = { name: e.target.name, fault: e.target.value };
  const answer = await fetch("faults", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted) });
  said.textContent = answer.ok ? `${wanted.name}: ${wanted.fault}` : await answer.text();
});

draw(await (await fetch("faults")).json());
